package consensus

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"saltclusterd/consensus/state"
)

// RotateEpoch puts a new AES key in force, and a new session seed as soon as all members understand that, and returns
// the epoch that is in force then. expect is the epoch the caller wants to be rid of: when another one is in force
// already, another caller has rotated and nothing is done. Simultaneous calls on this node are one; on other nodes the
// first one wins. newKey makes a key in Salt's text form; it must be random.
func (n *Node) RotateEpoch(ctx context.Context, expect uint64, reason string,
	newKey func() (state.Secret, error)) (state.Epoch, error) {
	if cur := n.View().Epochs().Current; cur.N > expect {
		return cur, nil
	}
	ch := n.rotate.DoChan(strconv.FormatUint(expect, 10), func() (any, error) {
		// The first caller may go away; the others still want it done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.Timing.Propose)
		defer cancel()
		return nil, n.rotateOnce(ctx, expect, reason, newKey)
	})
	select {
	case res := <-ch:
		if res.Err != nil {
			return state.Epoch{}, fmt.Errorf("rotate epoch %d: %w", expect, res.Err)
		}
	case <-ctx.Done():
		return state.Epoch{}, fmt.Errorf("rotate epoch %d: %w", expect, ctx.Err())
	}
	err := n.hub.waitUntil(ctx, func() bool { return n.View().Epochs().Current.N > expect })
	if err != nil {
		return state.Epoch{}, fmt.Errorf("rotate epoch %d: %w", expect, err)
	}
	return n.View().Epochs().Current, nil
}

func (n *Node) rotateOnce(ctx context.Context, expect uint64, reason string,
	newKey func() (state.Secret, error)) error {
	if n.View().Epochs().Current.N > expect {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	cmds := []state.Command{state.EpochRotate{Expect: expect, Key: key, Reason: reason}}
	if n.View().Level() >= state.LevelSeeds { // minions sign in for the one: they get the other with it
		seed := make([]byte, state.MinSeed)
		_, _ = rand.Read(seed) // never fails
		cmds = append([]state.Command{state.SeedRotate{Expect: expect, Key: key, Seed: state.NewSecret(seed),
			Reason: reason}}, cmds...)
	}
	// the second when a member is being removed: the seed waits until it is gone, see Node.admitRequest
	for _, cmd := range cmds {
		results, err := n.Propose(ctx, cmd)
		if err != nil {
			return err
		}
		if err := results[0].Err(); err == nil || !state.IsConflict(err) {
			return err
		}
	}
	if n.View().Epochs().Current.N < expect {
		return fmt.Errorf("%w: epoch %d is in force", ErrInvalid, n.View().Epochs().Current.N)
	}
	return nil
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// keyLog is consensus as the key directory needs it (keydir.KeyLog).
type keyLog struct{ *consensus.Node }

// Propose implements keydir.KeyLog.
func (l keyLog) Propose(ctx context.Context, cmds []state.Command) ([]state.Result, error) {
	return l.Node.Propose(ctx, cmds...)
}

// keyView is consensus as the sidecar's packages need it: who is accepted, with which key and session, and how a
// sign-in that the local master accepted becomes the cluster's decision.
type keyView struct {
	m       *member
	settled func(ctx context.Context, rev uint64) error
	synced  func(rev uint64) bool
	seeds   *epochs.Seeds
}

// Accepted returns the accepted key of a minion (sidecar.Keys, guard).
func (k *keyView) Accepted(id string) (pub string, ok bool) {
	key, found := k.m.Consensus.View().Key(id)
	if !found || key.State != state.KeyAccepted {
		return "", false
	}
	return key.Pub, true
}

// CatchUp implements sidecar.Keys. The epoch that was found is in force when it returns.
func (k *keyView) CatchUp(ctx context.Context) error {
	if err := k.m.Consensus.Barrier(ctx); err != nil {
		if errors.Is(err, consensus.ErrBehind) || k.Behind() > 0 {
			return fmt.Errorf("%w: %w", sidecar.ErrBehind, err)
		}
		return err
	}
	return k.m.svc.beginEpoch(k.m.Consensus.View())
}

// Behind implements sidecar.Keys.
func (k *keyView) Behind() time.Duration { return k.m.Consensus.Behind() }

// OnDisk implements sidecar.Keys: a key of a later revision than the key directory has written is waited for.
func (k *keyView) OnDisk(id string) (wait func(context.Context) error) {
	rev := k.m.Consensus.View().KeyRev(id)
	if k.synced(rev) {
		return nil
	}
	return func(ctx context.Context) error { return k.settled(ctx, rev) }
}

// Standing implements signin.Keys.
func (k *keyView) Standing(id string) signin.Standing {
	v := k.m.Consensus.View()
	st := signin.Standing{Rev: v.KeyRev(id), Seen: v.Rev()}
	if key, ok := v.Key(id); ok {
		st.Pub, st.Known, st.Accepted = key.Pub, true, key.State == state.KeyAccepted
	}
	return st
}

// Session derives a minion's session key. All nodes derive the same one.
func (k *keyView) Session(id, pub string) saltcrypt.Key {
	return saltcrypt.DeriveSession(k.seeds.Current().Secret, id, pub)
}

// Generation implements sidecar.Keys.
func (k *keyView) Generation() uint64 { return k.seeds.Current().Number }

// FormerSessions implements sidecar.Keys.
func (k *keyView) FormerSessions(id, pub string) (keys []saltcrypt.Key) {
	for _, s := range k.seeds.Former() {
		keys = append(keys, saltcrypt.DeriveSession(s.Secret, id, pub))
	}
	return keys
}

// Settled waits until the local master's key files show what consensus knows now.
func (k *keyView) Settled(ctx context.Context) error {
	return k.settled(ctx, k.m.Consensus.View().Rev())
}

// Accept proposes the key that the local master accepted.
func (k *keyView) Accept(ctx context.Context, id, pub string, st signin.Standing) error {
	results, err := k.m.Consensus.Propose(ctx, state.KeySet{
		ID: id, State: state.KeyAccepted, Pub: pub, BaseRev: st.Rev, SeenRev: st.Seen, Audit: k.m.Audit("auto-accept"),
	})
	switch {
	case errors.Is(err, consensus.ErrNoLeader), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", signin.ErrNoQuorum, err)
	case err != nil:
		return err
	}
	if results[0].Code != state.Conflict {
		return results[0].Err()
	}
	// The key directory may have seen the master's file and proposed the same before us; the leader knew before this node.
	if err := k.m.AwaitRevision(ctx, results[0].Rev); err != nil {
		return fmt.Errorf("%w: %w", signin.ErrNoQuorum, err)
	}
	if now, ok := k.Accepted(id); ok && saltcrypt.CleanKey(now) == saltcrypt.CleanKey(pub) {
		return nil
	}
	return signin.ErrChanged
}

// IDs implements jobcache.Keys.
func (k *keyView) IDs() []string {
	var ids []string
	k.m.Consensus.View().Keys(func(key state.Key) bool {
		if key.State == state.KeyAccepted {
			ids = append(ids, key.ID)
		}
		return true
	})
	return ids
}

package consensus

import (
	"context"
	"fmt"

	"saltclusterd/backoff"
)

// Barrier waits until this node's View holds everything that was committed
// anywhere in the cluster when Barrier was called. It needs a majority. ErrBehind
// means that the leader answered and that the View is not current: what it says
// may have been revoked. ErrNoLeader means that no node could tell.
func (n *Node) Barrier(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.cfg.Timing.Propose)
		defer cancel()
	}
	pause := backoff.Backoff{Min: retryFirst, Max: retryMost}
	for {
		index, err := n.leaderReadIndex(ctx)
		if err == nil {
			if err := n.hub.waitUntil(ctx, func() bool { return n.View().Index() >= index }); err != nil {
				return fmt.Errorf("barrier: entry %d: %w: %w", index, ErrBehind, err)
			}
			return nil
		}
		if n.isStopped() {
			return fmt.Errorf("barrier: %w", err)
		}
		if !pause.Wait(ctx) {
			return fmt.Errorf("barrier: %w: %w", ErrNoLeader, err)
		}
	}
}

// leaderReadIndex asks the leader for the read index. The leader may be this node.
func (n *Node) leaderReadIndex(ctx context.Context) (uint64, error) {
	r, err := n.runningRaft()
	if err != nil {
		return 0, err
	}
	if n.leads(r) {
		return n.readIndex(ctx, r)
	}
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID {
		return 0, ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	rep, fail := n.callLeader(ctx, leader, forwardRequest{V: forwardVersion, Op: opRead})
	if fail != nil {
		return 0, fail
	}
	return rep.Index, nil
}

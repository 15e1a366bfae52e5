package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// pollEvery is how often conditions inside raft are looked at that have no
// notification.
const pollEvery = 10 * time.Millisecond

// Bootstrap gives birth to a cluster with this node as its only member. It is
// refused with ErrBootstrapped when this node has one already. A bootstrap
// that was cut short can be repeated.
func (n *Node) Bootstrap(ctx context.Context, init state.Init) error {
	r, err := n.runningRaft()
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if init.Founder.ID != n.cfg.ID {
		return fmt.Errorf("bootstrap: %w: the founder is %s, not this node", ErrInvalid, init.Founder.ID)
	}
	if err := init.Validate(); err != nil {
		return fmt.Errorf("bootstrap: %w: %w", ErrInvalid, err)
	}
	if n.View().Initialized() {
		return fmt.Errorf("bootstrap: %w", ErrBootstrapped)
	}
	if err := n.formAlone(ctx, r); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := n.waitUntil(ctx, n.Serving); err != nil {
		return fmt.Errorf("bootstrap: %w: %w", ErrNoLeader, err)
	}
	if n.View().Initialized() { // by a bootstrap that was cut short
		return fmt.Errorf("bootstrap: %w", ErrBootstrapped)
	}
	results, err := n.proposeCommands(ctx, []state.Command{init})
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := results[0].Err(); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	n.log.Info("cluster born", "node", n.cfg.ID, "uuid", init.UUID)
	return nil
}

// formAlone makes this node the only voter, or finds that it is already.
func (n *Node) formAlone(ctx context.Context, r *raft.Raft) error {
	if r.LastIndex() == 0 {
		return askRaft(ctx, func() raft.Future { return r.BootstrapCluster(soleVoter(n.cfg.ID)) })
	}
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return err
	}
	s := f.Configuration().Servers
	if len(s) != 1 || node.ID(s[0].ID) != n.cfg.ID || s[0].Suffrage != raft.Voter {
		return ErrBootstrapped
	}
	return nil
}

// waitUntil waits until cond holds.
func (n *Node) waitUntil(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ctx.Done():
			return errors.Join(ErrClosed, n.Err())
		}
	}
	return nil
}

// TransferLeadership hands the leadership to a voter, or to the one raft thinks
// best when to is empty. Only the leader can do it.
func (n *Node) TransferLeadership(ctx context.Context, to node.ID) error {
	r, err := n.runningRaft()
	if err != nil {
		return fmt.Errorf("transfer leadership: %w", err)
	}
	if !n.leads(r) {
		return fmt.Errorf("transfer leadership: %w", &NotLeaderError{Leader: n.Leader()})
	}
	f := r.LeadershipTransfer
	if to != "" {
		f = func() raft.Future { return r.LeadershipTransferToServer(raft.ServerID(to), addrOf(to)) }
	}
	if err := askRaft(ctx, f); err != nil {
		return fmt.Errorf("transfer leadership: %w", err)
	}
	// Raft is done when its successor was told to start an election.
	if err := n.waitUntil(ctx, func() bool { l := n.Leader(); return l != "" && l != n.cfg.ID }); err != nil {
		return fmt.Errorf("transfer leadership: %w: %w", ErrNoLeader, err)
	}
	return nil
}

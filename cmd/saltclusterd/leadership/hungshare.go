package leadership

import (
	"context"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

const (
	// shareEvery is how often a leader checks whether its share hangs.
	shareEvery = time.Second
	// shareHungFor is for how long it hangs before another node is to lead: what answers late is not gone.
	shareHungFor = 10 * time.Second
	// successorRetry is the pause after a successor that did not take over.
	successorRetry = 10 * time.Second
)

// ResignWhenShareHangs hands the leadership to a node that is well when the shared file system of this leader
// hangs, until ctx ends. hung returns the reason, empty when it does not hang, and since when. This node could stay
// leader, because consensus keeps nothing there; but a host that hangs is restarted sooner or later, and a hand-over
// costs no election.
func (c *Control) ResignWhenShareHangs(ctx context.Context, hung func() (reason string, since time.Time)) {
	failed := node.ID("") // did not take over the last time
	for backoff.Poll(ctx, shareEvery) {
		reason, since := hung()
		if reason == "" || time.Since(since) < shareHungFor {
			continue
		}
		nodes, voters := c.cfg.Routes().Nodes, c.cfg.Voters()
		to := healthySuccessor(c.cfg.Self, failed, nodes, voters)
		if to == "" {
			to = healthySuccessor(c.cfg.Self, "", nodes, voters)
		}
		if to == "" { // it hangs everywhere
			continue
		}
		c.cfg.Logger.Warn("another node is to lead", "node", to, "reason", reason)
		if err := c.handOver(ctx, to); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("leadership not handed over", "node", to, "err", err)
			failed = to
			backoff.Sleep(ctx, successorRetry)
		}
	}
}

// healthySuccessor returns the first voter, except self and one other, whose master works and therefore its share.
// It is empty if there is none.
func healthySuccessor(self, except node.ID, nodes []router.Node, voters []node.ID) node.ID {
	for _, n := range nodes {
		if n.ID != self && n.ID != except && n.Usable() && !n.Draining && slices.Contains(voters, n.ID) {
			return n.ID
		}
	}
	return ""
}

package daemon

import (
	"context"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

const (
	// cedeEvery is how often a leader looks whether its share hangs.
	cedeEvery = time.Second
	// cedeAfter is for how long it does before somebody else is to lead: what answers late is not gone.
	cedeAfter = 10 * time.Second
	// cedeAgain is the pause after somebody who did not take over.
	cedeAgain = 10 * time.Second
)

// cede hands the leadership to a node that is well when this one's share hangs. It could go on leading, for nothing that it decides is
// there; but a host that hangs is restarted sooner or later, and a hand-over costs no election.
func (m *member) cede(ctx context.Context) {
	if m.svc == nil || !m.svc.share.Shared() {
		return
	}
	failed := node.ID("") // did not take over the last time
	for backoff.Sleep(ctx, cedeEvery) {
		reason, since := m.svc.share.Hung()
		if reason == "" || time.Since(since) < cedeAfter {
			continue
		}
		nodes, voters := m.routes().Nodes, m.cons.Status().Voters
		heir := wellHeir(m.d.id, failed, nodes, voters)
		if heir == "" {
			heir = wellHeir(m.d.id, "", nodes, voters)
		}
		if heir == "" { // it hangs everywhere
			continue
		}
		m.log.Warn("another node is to lead", "node", heir, "reason", reason)
		handing, cancel := context.WithTimeout(ctx, handTimeout)
		err := m.cons.TransferLeadership(handing, heir)
		cancel()
		if err != nil && ctx.Err() == nil {
			m.log.Warn("leadership not handed over", "node", heir, "err", err)
			failed = heir
			backoff.Sleep(ctx, cedeAgain)
		}
	}
}

// wellHeir is a voter, but for one, whose master works, and so its share.
func wellHeir(self, but node.ID, nodes []router.Node, voters []node.ID) node.ID {
	for _, n := range nodes {
		if n.ID != self && n.ID != but && n.Usable() && !n.Draining && slices.Contains(voters, n.ID) {
			return n.ID
		}
	}
	return ""
}

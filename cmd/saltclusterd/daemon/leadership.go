package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/gossip/node"
)

func (m *member) newLeadership() *leadership.Control {
	return leadership.New(leadership.Config{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus,
		Voters: m.voters, Alive: m.Alive, Leaving: m.leavingByGossip, Routes: m.Routes,
		Client: m.Client(), NoQuorum: m.noQuorum, Logger: m.log,
	})
}

func (m *member) voters() []node.ID { return m.Consensus.Status().Voters }

// leavingByGossip says whether another member reports that its minions leave it.
func (m *member) leavingByGossip(id node.ID) bool {
	g, ok := m.Gossip.Member(id)
	return ok && id != m.d.id && g.Meta.Draining
}

// resignWhenShareHangs is a duty of the leader.
func (m *member) resignWhenShareHangs(ctx context.Context) {
	if m.svc != nil && m.svc.share.Shared() {
		m.leadership.ResignWhenShareHangs(ctx, m.svc.share.Hung)
	}
}

// leadershipControl returns the error of a node without a cluster.
func (d *Daemon) leadershipControl() (*leadership.Control, error) {
	if m := d.current(); m != nil {
		return m.leadership, nil
	}
	return nil, d.errNoMember()
}

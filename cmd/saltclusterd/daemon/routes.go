package daemon

import (
	"context"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/ring"
	"saltclusterd/sidecar/router"
)

// followRoutes is a duty of the member.
func (m *member) followRoutes(ctx context.Context) {
	if !m.took.IsZero() {
		m.awaitPeers(ctx)
	}
	m.FollowRoutes(ctx)
}

// completeRoutes adds what the service for minions knows.
func (m *member) completeRoutes(v *router.View) {
	if s := m.svc; s != nil {
		v.Jobs, v.Relaying, v.Events = s.jobs, s.relay.InFlight, s.eventRules
		v.Leader, v.Pusher = m.Consensus.Status().Leader, m.pusher()
	}
}

// routesChanged has requests that wait for a master routed anew.
func (m *member) routesChanged() {
	if m.svc != nil {
		m.svc.proxy.NotifyMasters()
	}
}

// meta is what this node tells the others about itself.
func (m *member) meta() node.Meta {
	if m.svc == nil {
		return node.Meta{Build: m.d.version, Proto: protoVersion, Ready: m.Consensus.CaughtUp(), Witness: true, Roots: true,
			Level: state.Level, Tolerance: tolerance}
	}
	return node.Meta{
		Build: m.d.version, Salt: m.d.master.Version.String(), Proto: protoVersion,
		Ready: m.svc.serving.Load(), MasterUp: m.svc.masterServes(), Draining: m.svc.drain.Draining(),
		Returns: m.svc.takesReturns(), Mines: m.svc.takesMines(), PillarCache: m.d.master.Bool("pillar_cache"), Roots: true,
		Level: state.Level, Tolerance: tolerance,
		Subscribers: uint32(m.svc.pub.Stats().Subscribers), Work: m.svc.work(),
	}
}

// tolerance is how long this node waits for a heartbeat of the leader, in milliseconds.
var tolerance = uint16(consensus.DefaultTiming().Silence.Milliseconds())

// protoVersion is the newest version of the peer RPC that this build speaks.
const protoVersion = 1

// ringNodes lists the candidates of the ring.
func (m *member) ringNodes() []ring.Node {
	var out []ring.Node
	for _, n := range m.Routes().Nodes {
		if n.Usable() {
			out = append(out, ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining})
		}
	}
	return out
}

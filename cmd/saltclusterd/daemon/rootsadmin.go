package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// newRoots makes the file and pillar roots of a service.
func (s *service) newRoots() (*rootsadmin.Roots, error) {
	m, d := s.m, s.m.d
	return rootsadmin.New(rootsadmin.Config{
		Self: d.id, Options: d.cfg.Roots, Paths: d.cfg.Paths, Shared: d.shares() && !d.migration.StandsIn(), Master: d.master,
		Log: m.Consensus, HTTP: m.Port.HTTPClient(),
		Others: m.OtherMasters, Sources: func() []node.ID { there, _ := m.Sources(); return there }, Alive: m.Alive,
		Versions:    m.WithoutRoots,
		HoldFiles:   func(ctx context.Context) (func(), error) { return s.proxy.HoldFiles(ctx) },
		ForgetFiles: func() { s.native.Files.Forget() },
		Serving:     m.ready, Outcome: m.outcome,
		Logger: d.log, Registerer: d.reg,
	})
}

// rootsVerbs are what operators can ask about roots.
func (d *Daemon) rootsVerbs() rootsadmin.Verbs {
	return rootsadmin.Verbs{Of: d.runningRoots, View: d.agreed}
}

// runningRoots are the roots of this node, or an error for operators.
func (d *Daemon) runningRoots() (*rootsadmin.Roots, error) {
	m := d.current()
	switch {
	case m == nil:
		return nil, d.errNoMember()
	case m.svc == nil:
		return nil, adminapi.Errorf(adminapi.CodeRefused, "ask on a node with a salt-master",
			"this node is a witness and has no roots")
	}
	return m.svc.roots, nil
}

// agreed is what the cluster has agreed on, or an error for operators.
func (d *Daemon) agreed() (state.View, error) {
	m := d.current()
	if m == nil {
		return state.View{}, d.errNoMember()
	}
	return m.Consensus.View(), nil
}

// outcome describes this node as the result of an operation, without a message.
func (m *member) outcome() adminapi.Outcome {
	out := adminapi.Outcome{
		Node: string(m.d.id), ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Role: adminapi.RoleLearner,
		Ready: m.ready(),
	}
	if m.isVoter(m.Consensus.Status()) {
		out.Role = adminapi.RoleVoter
	}
	return out
}

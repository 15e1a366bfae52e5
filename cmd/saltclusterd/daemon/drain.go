package daemon

import (
	"context"
	"strings"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// newDrain makes what carries out drains of this node. The edges are made before.
func (s *service) newDrain() *drain.Runner {
	m := s.m
	return drain.New(drain.Config{
		Self: m.d.id, Log: m.Consensus, Routes: m.Routes,
		Publish: s.pub, Requests: s.reqs, Returns: s.native.Returns, Cache: s.cache, Jobs: s.published,
		Announce: func(draining bool) {
			m.d.checks.SetDraining(draining)
			m.Gossip.UpdateMeta()
			m.UpdateRoutes()
		},
		Resign: m.leadership.Resign, Reopen: s.reopenEdges, Fail: m.fail,
		AnnounceTime: m.d.cfg.Edge.DrainAnnounce, DrainTime: m.d.cfg.Edge.DrainTime, Logger: m.log,
	})
}

// reopenEdges has the edges listen again after a drain.
func (s *service) reopenEdges(ctx context.Context) error {
	for _, resume := range []func(context.Context) error{s.pub.Resume, s.reqs.Resume} {
		if err := retryListen(ctx, s.m.log, resume, nil); err != nil {
			return err
		}
	}
	return nil
}

// newDrains makes what decides about drains of all members; a witness has it as well.
func (m *member) newDrains() *drain.Cluster {
	return drain.NewCluster(drain.ClusterConfig{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus,
		Own:    func() *drain.Runner { return m.svc.drain },
		Voters: m.voters, Alive: m.Alive, Routes: m.Routes, Client: m.Client(), Audit: m.Audit,
		Find: m.findMaster, Undecided: undecided, NoQuorum: m.noQuorum,
		DrainTime: m.d.cfg.Edge.DrainAnnounce + m.d.cfg.Edge.DrainTime,
	})
}

// clusterDrains returns the error of a node without a cluster.
func (d *Daemon) clusterDrains() (*drain.Cluster, error) {
	if m := d.current(); m != nil {
		return m.drains, nil
	}
	return nil, d.errNoMember()
}

// findMaster finds the member with a salt-master that an operator names; this node if the name is empty.
func (m *member) findMaster(name string) (node.ID, error) {
	id := m.d.id
	if name != "" {
		id = node.ID(name)
	}
	var known []string
	for _, mem := range m.Consensus.View().Members() {
		if mem.ID == id && mem.Witness {
			return "", adminapi.Errorf(adminapi.CodeInvalid, "", "%s is a witness: it has no minions", id)
		}
		if mem.ID == id {
			return id, nil
		}
		known = append(known, string(mem.ID))
	}
	return "", adminapi.Errorf(adminapi.CodeNotFound, "members are "+strings.Join(known, ", "), "%q is not a member", name)
}

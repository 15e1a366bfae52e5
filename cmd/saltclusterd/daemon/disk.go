package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/cmd/saltclusterd/sharewatch"
	"saltclusterd/fsync/ledger"
	"saltclusterd/fsync/unshare"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// shares says whether the masters of the cluster have pki_dir and more on one file system.
func (d *Daemon) shares() bool { return !d.cfg.Cluster.IsolatedFilesystem && !d.witness() }

// leftToShare says that only the masters themselves write to a path: it is on the file system of a shared pki_dir, or
// that does not answer, and this node does not replicate it.
func (d *Daemon) leftToShare(path string) bool {
	return !d.migration.StandsIn() && d.shares() && sharewatch.OnShare(d.master.PkiDir, d.cfg.Paths.StateDir, path)
}

// hiddenID returns the id with which this node signs in at its master. In a shared pki_dir each node has a key of its
// own for that. It keeps the key when it leaves the share, because the master has no other until it is restarted.
func (s *service) hiddenID() string {
	if !s.share.Shared() && s.m.d.migration.State().Stage == unshare.Shared {
		return ""
	}
	return localmaster.HiddenID + "-" + string(s.m.d.id)
}

// checkShare is the health check of the file system that all masters share, and of leaving it.
func (s *service) checkShare(context.Context) health.Result {
	if r, bad := s.m.d.migration.Check(); bad {
		return r
	}
	return s.share.Check()
}

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
		Serving:     s.ready, Outcome: m.outcome,
		Logger: d.log, Registerer: d.reg,
	})
}

// newLedgers returns what this node holds. verify compares the sections and shows them in this order; whatever else is
// replicated is added here.
func (s *service) newLedgers() *operator.Ledgers {
	return operator.NewLedgers(operator.LedgersConfig{
		Self: s.m.d.id, Others: s.m.OtherMasters, Client: s.m.Client(), Sections: []operator.Section{
			{Name: "keys", Holds: s.dir.Ledger, Decided: s.dir.Decided},
			{Name: "grains", Holds: s.stores.Data.Ledger},
			{Name: "pillar", Holds: s.stores.Data.PillarLedger},
			{Name: "mine", Holds: s.stores.Mines.Ledger},
			{Name: "tokens", Holds: s.stores.Tokens.Ledger},
			{Name: "roots", Holds: func() (ledger.Ledger, error) { return s.roots.Ledger(s.ctx) }, Decided: s.roots.Decided},
			{Name: "jobs", Holds: s.stores.Jobs.Ledger, Rules: operator.JobRules(s.m.JobReplicas)},
			{Name: "signing key", Holds: func() (ledger.Ledger, error) { return s.m.d.masterKeys().SigningLedger() }},
		},
	})
}

// newMigrationSteps makes what runs the steps of the migration.
func (s *service) newMigrationSteps() *migration.Steps {
	d := s.m.d
	return migration.NewSteps(migration.StepsConfig{
		Host: d.migration, Peers: s.m.migrationPeers(), Log: s.m.Consensus,
		RootsStored: func() bool { return s.roots.Stored() },
		Go:          func(run func(context.Context)) { s.wg.Go(func() { run(s.ctx) }) },
		Upgrade:     d.renew, RestartMaster: d.restartMaster, Announce: s.m.Gossip.UpdateMeta,
		Lag: migration.Lag{
			Serving:  func() bool { return s.Opened.Load() && s.Settled.Load() },
			CaughtUp: s.m.Consensus.CaughtUp, MasterProblem: s.local.Problem, KeysSynced: s.dir.Synced,
			RootsPending: func() string { return s.roots.Pending() },
		},
		Members: func(ctx context.Context) []adminapi.Member { return s.m.reports.Members(ctx) }, // made after the service
		Ready:   func() bool { return d.checks.Report(health.ScopeReady).OK },
	})
}

func (m *member) migrationPeers() migration.Peers {
	return migration.Peers{List: m.OtherMasters, Client: m.Client()}
}

// migrationCluster is what operators ask about migrations.
func (m *member) migrationCluster() *migration.Cluster {
	c := &migration.Cluster{Self: m.d.id, Peers: m.migrationPeers(), Find: m.FindMaster}
	m.role.addSteps(c)
	return c
}

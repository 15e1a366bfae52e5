package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// newMigration reads how far this node is on its way from a shared file system to its own.
func (d *Daemon) newMigration() *migration.Host {
	return migration.New(migration.Config{
		Node: d.id, Shared: d.shares(), Options: d.cfg, Master: func() *localmaster.Config { return d.master }, Logger: d.log,
	})
}

// leftToShare says that only the masters themselves write to a path: it is on the share, and this node does not
// replicate that.
func (d *Daemon) leftToShare(path string) bool { return !d.migration.StandsIn() && d.onShare(path) }

// newMigrationSteps makes what runs the steps of the migration.
func (s *service) newMigrationSteps() *migration.Steps {
	d := s.m.d
	return migration.NewSteps(migration.StepsConfig{
		Host: d.migration, Peers: s.m.migrationPeers(), Log: s.m.Consensus,
		RootsStored: func() bool { return s.roots.Stored() },
		Go:          func(run func(context.Context)) { s.wg.Go(func() { run(s.ctx) }) },
		Upgrade: func(ctx context.Context, progress func(string)) error {
			_, err := d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(_, message string, _ ...int) { progress(message) })
			return err
		},
		RestartMaster: func(ctx context.Context, progress func(string)) error {
			return d.restartMaster(ctx, func(_, message string, _ ...int) { progress(message) })
		},
		Announce: s.m.Gossip.UpdateMeta, Behind: s.behindCluster,
		Members: func(ctx context.Context) []adminapi.Member { return s.m.reports.Members(ctx) }, // made after the service
		Ready:   func() bool { return d.checks.Report(health.ScopeReady).OK },
	})
}

func (m *member) migrationPeers() migration.Peers {
	return migration.Peers{List: m.OtherMasters, Client: m.Client()}
}

// migrationCluster is what operators ask about migrations.
func (d *Daemon) migrationCluster() (*migration.Cluster, error) {
	m := d.current()
	if m == nil {
		return nil, d.errNoMember()
	}
	c := &migration.Cluster{
		Self: d.id, Peers: m.migrationPeers(),
		Find: m.findMaster,
	}
	if m.svc != nil {
		c.Steps = m.svc.migration
	}
	return c, nil
}

// behindCluster says what this node lacks to serve as well as the others; empty when it lacks nothing.
func (s *service) behindCluster(ctx context.Context) string {
	switch {
	case !s.opened.Load() || !s.settled.Load():
		return "4505 and 4506 are being opened"
	case !s.m.Consensus.CaughtUp():
		return "catching up with the cluster"
	case s.m.d.migration.MasterOutdated():
		return "the salt-master has not been restarted"
	case s.masterProblem(ctx) != "":
		return s.masterProblem(ctx)
	case !s.dir.Synced(s.m.Consensus.View().Rev()):
		return "bringing the key files up to date"
	}
	if pending := s.roots.Pending(); pending != "" {
		return "bringing the file and pillar roots up to date: " + pending
	}
	return ""
}

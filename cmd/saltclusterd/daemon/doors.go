package daemon

import (
	"context"
	"fmt"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/health"
)

// door is a server that load balancers or operators talk to, with or without a cluster.
type door interface {
	part
	Bind(context.Context) error // so that Open cannot find its address taken
}

// bindDoors makes the doors and binds what they listen on.
func (d *Daemon) bindDoors(ctx context.Context) error {
	cfg := health.ServerConfig{
		Listen: d.cfg.Health.Listen, AgentListen: d.cfg.Health.AgentListen, Checker: d.checks,
		Trusted: d.cfg.Health.Trusted, Leads: d.leads, ListenWith: d.sockets.Listen, Logger: d.log, Registerer: d.reg.host,
	}
	if d.cfg.Health.Metrics {
		cfg.Gatherer = d.reg
	}
	if d.cfg.Health.Page && d.cfg.Health.Listen != "" {
		cfg.Page, d.series = d.statusPage()
	}
	probes, err := health.NewServer(cfg)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	operators, err := admin.New(admin.Config{
		Socket: d.cfg.Paths.AdminSocket, Group: d.cfg.Paths.AdminGroup, Verbs: d.verbs(), Logger: d.log,
		Registerer: d.reg.host,
		Inherited:  d.sockets.InheritedUnix, Made: d.sockets.KeepUnix,
	})
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	for _, door := range []door{probes, operators} {
		if err := door.Bind(ctx); err != nil {
			d.closeDoors()
			return err
		}
		d.doors = append(d.doors, door)
	}
	return nil
}

// openDoors begins the checks and opens the doors.
func (d *Daemon) openDoors(ctx context.Context, open *[]closer) error {
	if err := d.checks.Open(ctx); err != nil {
		return err
	}
	d.node.AwaitChecks()
	*open = append(*open, d.checks)
	if d.series != nil {
		*open = append(*open, operator.KeepSeries(d.series))
	}
	for _, door := range d.doors {
		if err := door.Open(ctx); err != nil {
			return err
		}
		*open = append(*open, door)
	}
	return nil
}

// closeDoors closes doors that were bound and will not be opened.
func (d *Daemon) closeDoors() {
	for _, door := range d.doors {
		_ = door.Close() // nothing was served
	}
	d.doors = nil
}

// verbs are what operators can ask of this node.
func (d *Daemon) verbs() []admin.Verbs {
	minions, keys := d.minionVerbs(), d.keyVerbs()
	return []admin.Verbs{
		admin.Reports(d.node),
		admin.Joining(d.joiner),
		admin.Tokens(joining.TokenVerbs{Of: d.currentAdmission}),
		admin.Draining(drain.Verbs{Of: d.clusterDrains}),
		admin.Transferring(leadership.Verbs{Of: d.leadershipControl}),
		admin.Rotating(rotation.Verbs{Of: d.rotations}),
		admin.Governing(removal.Verbs{Of: d.currentRemover}),
		admin.Recovery(d.newRecoverer()),
		admin.Jobs(d.jobVerbs()),
		admin.Upgrading(d.upgrader),
		admin.Walls(d.wallVerbs()),
		admin.MinionViews(minions),
		admin.Events(minions),
		admin.Verifying(operator.Verifying{Of: d.ledgers}),
		admin.Keys(keys),
		admin.HeldKeys(keys),
		admin.KeyTransfer(keys),
		admin.LogLevels(d.logLevels),
		admin.Checkups(d.node),
		admin.Roots(d.rootsVerbs()),
		admin.Migration(migration.Verbs{Of: d.migrationCluster}),
		admin.Returns(d.returnVerbs()),
	}
}

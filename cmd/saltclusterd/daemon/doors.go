package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/health"
)

// door is a server that load balancers or operators talk to, with or without a cluster.
type door interface {
	lifecycle.Part
	Bind(context.Context) error // so that Open cannot find its address taken
}

// bindDoors makes the doors and binds what they listen on.
func (d *Daemon) bindDoors(ctx context.Context) error {
	cfg := health.ServerConfig{
		Listen: d.cfg.Health.Listen, AgentListen: d.cfg.Health.AgentListen, Checker: d.checks,
		Trusted: d.cfg.Health.Trusted, Leads: d.leads, ListenWith: d.sockets.Listen, Logger: d.log, Registerer: d.reg.Host,
	}
	if d.cfg.Health.Metrics {
		cfg.Gatherer = d.reg.WithOldNames()
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
		Registerer: d.reg.Host,
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
func (d *Daemon) openDoors(ctx context.Context, open *[]io.Closer) error {
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

// Rehearse returns why a daemon with this configuration could not start, or not serve, after the end of the process
// whose addresses are in replaces (takeover.ReplacesEnv). That process still runs.
func Rehearse(ctx context.Context, cfg *config.Config, replaces string) error {
	d, err := New(cfg, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	had, err := takeover.ParseListening(replaces)
	if err != nil {
		return err
	}
	if !d.witness() {
		if err := d.readMaster(ctx); err != nil {
			return err
		}
	}
	record, err := d.readRecord()
	if err != nil {
		return err
	}
	return d.tryListening(ctx, had, record != nil)
}

// tryListening binds all addresses at once that the other process does not have, and closes them.
func (d *Daemon) tryListening(ctx context.Context, had []takeover.Listening, member bool) (err error) {
	operators, err := admin.New(admin.Config{
		Socket: d.cfg.Paths.AdminSocket, Group: d.cfg.Paths.AdminGroup, Verbs: d.verbs(),
	})
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	defer func() { err = errors.Join(err, operators.Close()) }()
	return takeover.Rehearse(ctx, takeover.ListAddresses(d.cfg, member), had, operators.Bind)
}

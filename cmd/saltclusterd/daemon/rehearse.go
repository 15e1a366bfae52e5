package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/admin"
)

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

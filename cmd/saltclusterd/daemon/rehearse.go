package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/admin"
)

// A program that is started in place of this one, which ends first, must come up. So while it checks its configuration, and this process still
// runs, it binds for a moment whatever it would listen on, but for what this process has: that is free then, in whatever form. A wider
// form of it is not tried, so that what somebody else has of the rest does not show.

// listens lists what this daemon listens on; without a membership only what every node does.
func (d *Daemon) listens(member bool) (all []takeover.Listening) {
	add := func(network, what string, addrs ...string) {
		for _, addr := range addrs {
			if addr != "" {
				all = append(all, takeover.Listening{Network: network, Addr: addr, Purpose: what})
			}
		}
	}
	add("unix", "admin socket", d.cfg.Paths.AdminSocket)
	add("tcp", "health_listen", d.cfg.Health.Listen)
	add("tcp", "agent_check_listen", d.cfg.Health.AgentListen)
	if !member {
		return all
	}
	add("tcp", "open peer port", d.cfg.PeerListen())
	add("udp", "bind the gossip socket", d.cfg.PeerListen())
	if !d.witness() {
		pub, req := d.cfg.EdgeAddresses(localAddrs())
		add("tcp", "listen for minions", append(pub, req...)...)
	}
	return all
}

// Rehearse returns why a daemon with this configuration would not come up, or not serve, in place of the process that has said what it listens on.
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
	seed, err := membership.ReadRecord(cfg.Paths.StateDir)
	if err != nil || seed != nil {
		if err := d.checkMembership(seed, err); err != nil {
			return err
		}
	}
	return d.tryListening(ctx, had, seed != nil)
}

// tryListening binds what the other process does not have, all of it at once, and closes it.
func (d *Daemon) tryListening(ctx context.Context, had []takeover.Listening, member bool) (err error) {
	operators, err := admin.New(admin.Config{Socket: d.cfg.Paths.AdminSocket, Group: d.cfg.Paths.AdminGroup, Verbs: d.verbs()})
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	defer func() { err = errors.Join(err, operators.Close()) }()
	return takeover.Rehearse(ctx, d.listens(member), had, operators.Bind)
}

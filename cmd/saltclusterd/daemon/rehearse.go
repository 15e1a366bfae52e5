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

// listens lists what this daemon listens on; for a node without a cluster only what all nodes do.
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
	seed, err := membership.ReadRecord(cfg.Paths.StateDir)
	if err != nil || seed != nil {
		if err := d.checkMembership(seed, err); err != nil {
			return err
		}
	}
	return d.tryListening(ctx, had, seed != nil)
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
	return takeover.Rehearse(ctx, d.listens(member), had, operators.Bind)
}

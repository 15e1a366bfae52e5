package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/sidecar/admin"
)

// A program that is started in place of this one, which ends first, must come up. So while it checks its configuration, and this process still
// runs, it binds for a moment whatever it would listen on, but for what this process has: that is free then, in whatever form. A wider
// form of it is not tried, so that what somebody else has of the rest does not show.

// ReplacesEnv tells a program that checks its configuration what the process listens on that it is to replace.
const ReplacesEnv = "SALTCLUSTERD_REPLACES"

// listening is something that a daemon listens on.
type listening struct {
	Network, Addr string
	what          string
}

// listens lists what this daemon listens on; without a membership only what every node does.
func (d *Daemon) listens(member bool) (all []listening) {
	add := func(network, what string, addrs ...string) {
		for _, addr := range addrs {
			if addr != "" {
				all = append(all, listening{network, addr, what})
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

// takes says whether l cannot be had while somebody has the other.
func (l listening) takes(other listening) bool {
	switch {
	case l.Network != other.Network:
		return false
	case l.Network == "unix":
		return sameFile(l.Addr, other.Addr)
	}
	return overlap(l.Addr, other.Addr)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return a == b || errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Rehearse returns why a daemon with this configuration would not come up, or not serve, in place of the process that has said what it listens on.
func Rehearse(ctx context.Context, cfg *config.Config, replaces string) error {
	d, err := New(cfg, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	had, err := parseListening(replaces)
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

// parseListening reads ReplacesEnv.
func parseListening(text string) (had []listening, err error) {
	if err := json.Unmarshal([]byte(text), &had); err != nil {
		return nil, fmt.Errorf("read %s: %w", ReplacesEnv, err)
	}
	return had, nil
}

// tryListening binds what was not had, all of it at once, and lets go of it.
func (d *Daemon) tryListening(ctx context.Context, had []listening, member bool) (err error) {
	operators, err := admin.New(admin.Config{Socket: d.cfg.Paths.AdminSocket, Group: d.cfg.Paths.AdminGroup, Verbs: d.verbs()})
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	open := []io.Closer{operators}
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, l := range d.listens(member) {
		switch {
		case slices.ContainsFunc(had, l.takes):
		case l.Network == "unix":
			if err := operators.Bind(ctx); err != nil {
				return err
			}
		default:
			c, err := l.bind(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", l.what, err)
			}
			open = append(open, c)
		}
	}
	return nil
}

func (l listening) bind(ctx context.Context) (io.Closer, error) {
	if l.Network == "udp" {
		return (&net.ListenConfig{}).ListenPacket(ctx, l.Network, l.Addr)
	}
	return (&net.ListenConfig{}).Listen(ctx, l.Network, l.Addr)
}

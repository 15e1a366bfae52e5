package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
)

const readyWithin = 3 * time.Minute

// commandLineWaits is the masters' timeout. For that long, and gather_job_timeout, what a master publishes while its
// saltclusterd is down is published when it is back: a slow machine needs more than the default to start it.
const commandLineWaits = 25 * time.Second

// newWorld brings a cluster up, with everything that a run needs.
func newWorld(ctx context.Context, l *lab.Lab, cfg Config) (*world, error) {
	w := &world{cfg: cfg, lab: l, homes: map[string]string{}}
	if err := w.layOut(ctx); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range w.cluster.Nodes {
		names = append(names, n.Name)
		w.homes[n.Addr] = n.Name
	}
	w.rec = history.NewRecorder(cfg.Seed, names...)
	dir, err := writeScripts(l)
	if err != nil {
		return nil, err
	}
	w.scripts = dir
	for _, n := range w.cluster.Nodes {
		w.clients = append(w.clients, newClients(w, n, dir))
	}
	if err := w.newPlayers(); err != nil {
		return nil, err
	}
	return w, w.up(ctx)
}

func (w *world) layOut(ctx context.Context) error {
	// Keys are deleted all the time here, which makes all sign in anew; a 3008.3 minion that loses its connection in the
	// middle of that hangs for good, by its own fault, unless it does not look for the loss.
	stock := lab.Settings{"zmq_monitor": w.cfg.Monitor}
	spec := lab.ClusterSpec{
		Minions: w.cfg.Stock, MinionSettings: stock, DaemonSettings: w.cfg.Daemon,
		MasterSettings: lab.Settings{"timeout": int(commandLineWaits.Seconds())},
	}
	for i := range w.cfg.Nodes {
		spec.Masters = append(spec.Masters, lab.Versions[i%len(lab.Versions)])
	}
	if w.lab.Namespaces() {
		w.have |= network
	}
	if w.lab.Namespaces() && !w.cfg.Calm {
		w.have |= network | disks | seams | clockSeam
		spec.Disk, spec.Seams = w.cfg.Disk, lab.SeamSync
	}
	var err error
	w.cluster, err = w.lab.NewCluster(ctx, spec)
	if err != nil || w.have&clockSeam == 0 {
		return err
	}
	w.clock = int(w.cfg.Seed % uint64(w.cfg.Nodes))
	n := w.node(w.clock)
	return errors.Join(n.Daemon.GiveSeams(lab.SeamSync|lab.SeamClock), n.Master.GiveSeams(lab.SeamClock))
}

// newPlayers makes the played minions. Their keys are among the accepted ones of the founder, as on a master that has
// had them for years.
func (w *world) newPlayers() error {
	from, err := w.lab.Host(context.Background(), "min")
	if err != nil {
		return err
	}
	dir := filepath.Join(w.node(0).Master.PKIDir(), "minions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("accept keys: %w", err)
	}
	for _, n := range w.cluster.Nodes {
		for i := range w.cfg.Players {
			m, err := play.New(from, fmt.Sprintf("at-%s-%d", n.Name, i+1))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, m.ID), []byte(m.PublicText()), 0o644); err != nil {
				return fmt.Errorf("accept keys: %w", err)
			}
			w.players = append(w.players, &player{Minion: m, addr: n.Addr, node: n.Name})
		}
	}
	return nil
}

func (w *world) up(ctx context.Context) error {
	c := w.cluster
	for _, step := range []func(context.Context) error{c.Form, c.StartEdge, c.AcceptKeys} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var g errgroup.Group
	for _, m := range c.Minions {
		g.Go(func() error {
			return lab.Eventually(ctx, readyWithin, m.ID+" to have its modules", func(ctx context.Context) error {
				got, err := w.node(0).Master.Pub(ctx, m.ID, "saltutil.sync_modules")
				if err != nil {
					return err
				}
				return lab.AnsweredBy(got, m.ID)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, m := range c.Minions {
		if err := os.MkdirAll(m.StateDir(), 0o755); err != nil {
			return err
		}
	}
	if err := w.grow(ctx); err != nil {
		return err
	}
	if w.have&disks != 0 {
		for _, n := range c.Nodes { // what was laid out is as old as any installation
			if err := n.SyncDisk(); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow makes the minions what they are after some days: each of the keys with which one of its process signs in has
// been seen. There are two, and the second one is only used when a request is refused for its session, which is the
// fifth before the present one then (sidecar/late; epochs.Seeds).
func (w *world) grow(ctx context.Context) error {
	var ids []string
	for _, m := range w.cluster.Minions {
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	for range 6 {
		res, err := w.node(0).Daemon.Ctl(ctx, "rotate", "aes", "--yes")
		if err == nil {
			err = res.Err()
		}
		if err != nil {
			return fmt.Errorf("rotate: %w", err)
		}
		err = lab.Eventually(ctx, readyWithin, "minions to answer under a new key", func(ctx context.Context) error {
			got, err := w.node(0).Master.Pub(ctx, "min*", "test.ping")
			if err != nil {
				return err
			}
			return lab.AnsweredBy(got, ids...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// clientsReady waits until every publisher and listener has started, and every played minion hangs on its node.
func (w *world) clientsReady(ctx context.Context) error {
	return lab.Eventually(ctx, readyWithin, "clients and played minions", func(context.Context) error {
		for _, c := range w.clients {
			if c.started() < 2 {
				return fmt.Errorf("those on %s have not started: %s %s", c.node.Name, c.pub.Tail(2), c.listener.Tail(2))
			}
		}
		return w.playersBack()
	})
}

// playersBack tells whether all played minions are subscribed.
func (w *world) playersBack() error {
	for _, p := range w.players {
		if !p.Connected() {
			return fmt.Errorf("%s is not subscribed", p.ID)
		}
	}
	return nil
}

package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
)

// Config of a run.
type Config struct {
	Seed    uint64
	Nodes   int           // 3 or 5; their versions of Salt take turns
	For     time.Duration // how long faults are begun
	Hold    time.Duration // how long each fault is held; 0: what its kind says
	Only    []string      // names of kinds; empty: all
	Players int           // played minions on each node
	Stock   []string      // versions of stock minions behind HAProxy
	Every   time.Duration // between publications
	Peace   time.Duration // between a recovery and the next fault

	KeyPause time.Duration // between decisions about keys
	Mended   time.Duration // within which the cluster must have recovered from a fault
	Disk     int           // MiB per node
	Calm     bool          // no disks and no seams: nothing but what the network can do
	Padding  int           // bytes that make publications larger
	Monitor  bool          // stock minions look for the loss of their connection (zmq_monitor, their default from 3007 on)

	Daemon lab.Settings // of each saltclusterd
}

// Default is what "make chaos" runs without arguments.
func Default() Config {
	return Config{
		Seed: 1, Nodes: 3, For: 5 * time.Minute, Players: 2, Stock: []string{"3006.28", "3007.15", "3008.3"},
		Every: time.Second,
		Peace: 6 * time.Second, KeyPause: 6 * time.Second, Mended: 2 * time.Minute, Disk: 512,
	}
}

// Run does all of it. The error tells that the run itself could not be made; what the cluster did wrong are violations.
func Run(ctx context.Context, l *lab.Lab, cfg Config) (*history.History, []history.Violation, error) {
	w, err := newWorld(ctx, l, cfg)
	if err != nil {
		return nil, nil, err
	}
	err = w.live(ctx)
	h := w.rec.History()
	o := history.DefaultOptions()
	o.Unfinished = err != nil
	return h, history.Check(h, o), err
}

// live is the whole order of a run, once the cluster is up.
func (w *world) live(ctx context.Context) error {
	watch, stopWatching := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stopWatching()
	if err := w.watch(watch, &watching); err != nil {
		return err
	}
	for _, c := range w.clients {
		defer c.close()
	}
	work, stopWork := context.WithCancel(ctx)
	var working sync.WaitGroup
	o := newOperator(w, w.cfg.Seed)
	working.Go(func() { w.publish(work) })
	working.Go(func() { w.events(work) })
	working.Go(func() { o.work(work) })
	began := time.Now()
	err := w.disturb(ctx)
	if err == nil {
		err = w.calm(ctx)
	}
	stopWork()
	working.Wait()
	if err != nil {
		return err
	}
	w.lab.Logf("everything is mended; the last returns are waited for")
	if err := w.settle(ctx); err != nil {
		return err
	}
	for _, m := range w.cluster.Minions { // no fault hits them themselves
		w.rec.Presence(history.Presence{Minion: m.ID, Roams: true, From: began, To: time.Now()})
	}
	stopWatching() // ends subscriptions, so that their times are in the history
	watching.Wait()
	return w.judgeable(ctx, o)
}

// watch starts clients and played minions, until ctx ends, and waits until they are ready.
func (w *world) watch(ctx context.Context, wg *sync.WaitGroup) error {
	for _, c := range w.clients {
		if err := c.ensure(ctx); err != nil {
			return err
		}
		wg.Go(func() { c.watch(ctx) })
	}
	for _, p := range w.players {
		// Like any minion that was pending, it has met a master before it is let in: it shows its token each time from then
		// on.
		if _, err := p.SignIn(ctx, p.addr); err != nil {
			return err
		}
		wg.Go(func() { p.Serve(ctx, play.Life{Addr: p.addr, Others: []string{w.cluster.LB.Host().Addr}, Observer: w}) })
	}
	return w.clientsReady(ctx)
}

// disturb follows the plan until the time is over.
func (w *world) disturb(ctx context.Context) error {
	kinds := Select(w.have, w.cfg.Only...)
	if len(kinds) == 0 {
		return errors.New("no fault of that name is possible in this lab")
	}
	byName := map[string]Kind{}
	for _, k := range kinds {
		byName[k.Name] = k
	}
	if !backoff.Sleep(ctx, w.cfg.Peace) {
		return context.Cause(ctx)
	}
	end := time.Now().Add(w.cfg.For)
	for i, s := range Plan(w.cfg.Seed, w.cfg.Nodes, 10_000, kinds) {
		if time.Now().After(end) {
			return nil
		}
		if byName[s.Kind].Needs&clockSeam != 0 {
			s.Nodes = []int{w.clock}
		}
		if w.cfg.Hold > 0 {
			s.Hold = w.cfg.Hold
		}
		w.lab.Logf("fault %d: %s", i+1, s)
		if err := w.step(ctx, s, byName[s.Kind]); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// step breaks something, holds it, mends it, and waits for the cluster to be whole, and then for the minions: what the
// next fault costs a minion that is on its way back from this one is not promised (docs/explanation/guarantees.md).
// That the cluster never is whole is its fault, and stands in the history.
func (w *world) step(ctx context.Context, s Step, k Kind) error {
	w.setTouched(s.Nodes)
	over := w.rec.Fault(w.faultOf(s, k))
	if err := k.begin(ctx, w, s); err != nil {
		return err
	}
	if k.Name != "flapping" && !backoff.Sleep(ctx, s.Hold) {
		return context.Cause(ctx)
	}
	if k.end != nil {
		if err := k.end(ctx, w, s); err != nil {
			return err
		}
	}
	mended := time.Now()
	if err := w.restore(ctx); err != nil {
		return err
	}
	if err := w.recovered(ctx); err != nil {
		w.rec.Note("not recovered from %s: %v", s, err)
		return fmt.Errorf("%w from %s: %w", ErrNotRecovered, s, err)
	}
	over()
	w.setTouched(nil)
	w.lab.Logf("  whole again %s after it was mended", time.Since(mended).Round(100*time.Millisecond))
	if err := w.minionsBack(ctx); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if !backoff.Sleep(ctx, w.cfg.Peace) {
		return context.Cause(ctx)
	}
	return nil
}

// ErrNotRecovered means that the cluster did not become whole on its own, so nothing more could be tried.
var ErrNotRecovered = errors.New("the cluster has not recovered")

// recovered waits until all masters and daemons serve and all nodes see each other. A daemon that has ended is started
// again, as a service manager does; one that ends over and over does not recover.
func (w *world) recovered(ctx context.Context) error {
	return lab.Eventually(ctx, w.cfg.Mended, "the cluster to be whole", func(ctx context.Context) error {
		for i, n := range w.cluster.Nodes {
			for _, p := range []*lab.Process{n.Daemon.Process, n.Master.Process} {
				if !p.Running() {
					w.rec.Note("%s has ended with %d: %s", p, p.ExitCode(), p.Tail(3))
					if err := p.Start(ctx); err != nil {
						return err
					}
				}
			}
			if err := n.Master.Ready(ctx); err != nil {
				return fmt.Errorf("salt-master on %s: %w", n.Name, err)
			}
			if err := w.clients[i].ensure(ctx); err != nil {
				return err
			}
		}
		for _, n := range w.cluster.Nodes {
			if err := w.cluster.Sees(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
		return w.playersBack()
	})
}

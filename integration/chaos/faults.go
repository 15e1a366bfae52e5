package chaos

import (
	"context"
	"errors"
	"syscall"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/lab"
)

// each runs f for the nodes of a step, and joins what went wrong.
func (w *world) each(s Step, f func(*lab.Node) error) error {
	var errs []error
	for _, i := range s.Nodes {
		errs = append(errs, f(w.cluster.Nodes[i]))
	}
	return errors.Join(errs...)
}

func killDaemons(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.Daemon.Kill() })
}

func killMasters(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.Master.Kill() })
}

func killBoth(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return errors.Join(n.Daemon.Kill(), n.Master.Kill()) })
}

// stopDaemons ends saltclusterd as systemctl does; restore starts it again.
func stopDaemons(ctx context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.Daemon.Stop(ctx) })
}

func drainNode(ctx context.Context, w *world, s Step) error {
	return w.ctl(ctx, s, "drain", "--self", "--timeout", "1m")
}

func undrainNode(ctx context.Context, w *world, s Step) error {
	return w.ctl(ctx, s, "undrain", "--timeout", "1m")
}

// ctl gives a command of the operator's tool on each node of the step.
func (w *world) ctl(ctx context.Context, s Step, args ...string) error {
	return w.each(s, func(n *lab.Node) error {
		res, err := n.Daemon.Ctl(ctx, args...)
		if err != nil {
			return err
		}
		return res.Err()
	})
}

func pauseDaemons(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.Daemon.Pause() })
}

func pauseMasters(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.Master.Pause() })
}

func pauseBoth(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return errors.Join(n.Daemon.Pause(), n.Master.Pause()) })
}

// powerLoss takes the power from all nodes of the step at the same moment.
func powerLoss(ctx context.Context, w *world, s Step) error {
	off := make(chan error, len(s.Nodes))
	for _, i := range s.Nodes {
		go func() { off <- w.cluster.Nodes[i].PowerOff(ctx) }()
	}
	var errs []error
	for range s.Nodes {
		errs = append(errs, <-off)
	}
	return errors.Join(errs...)
}

// isolate parts the nodes of the step from all other nodes; minions, which reach every node, stay in touch with both
// sides.
func isolate(ctx context.Context, w *world, s Step) error {
	in, out := w.sides(s)
	return w.lab.Partition(ctx, in, out)
}

func cutOneWay(ctx context.Context, w *world, s Step) error {
	in, out := w.pair(s)
	return w.lab.Cut(ctx, in, out)
}

func cutBothWays(ctx context.Context, w *world, s Step) error {
	in, out := w.pair(s)
	return w.lab.Partition(ctx, []*lab.Host{in}, []*lab.Host{out})
}

// flap cuts a node from the others and heals it, again and again.
func flap(ctx context.Context, w *world, s Step) error {
	in, out := w.sides(s)
	for end := time.Now().Add(s.Hold); time.Now().Before(end); {
		if err := w.lab.Partition(ctx, in, out); err != nil {
			return err
		}
		if !backoff.Sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
		if err := w.lab.Heal(ctx); err != nil {
			return err
		}
		if !backoff.Sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func lossy(ctx context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return w.lab.Delay(ctx, n.Host, lab.Latency{Loss: 0.3}) })
}

func slowLink(ctx context.Context, w *world, s Step) error {
	by := lab.Latency{Each: 100 * time.Millisecond, Jitter: 20 * time.Millisecond} // each way
	return w.each(s, func(n *lab.Node) error { return w.lab.Delay(ctx, n.Host, by) })
}

func clockAhead(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return w.lie(n, lab.Seams{Clock: time.Hour}) })
}

func slowSync(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return w.lie(n, lab.Seams{Sync: 500 * time.Millisecond}) })
}

func failSync(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return w.lie(n, lab.Seams{SyncErr: syscall.EIO}) })
}

func fullDisk(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.FillDisk() })
}

func brokenDisk(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return n.BreakDisk() })
}

// rebootNodes is what repairs a broken disk.
func rebootNodes(ctx context.Context, w *world, s Step) error { return powerLoss(ctx, w, s) }

// stopAll ends all nodes as an operator would; restore starts them all at once.
func stopAll(ctx context.Context, w *world, s Step) error {
	off := make(chan error, 2*len(s.Nodes))
	for _, i := range s.Nodes {
		for _, p := range []*lab.Process{w.node(i).Daemon.Process, w.node(i).Master.Process} {
			go func() { off <- p.Stop(ctx) }()
		}
	}
	var errs []error
	for range 2 * len(s.Nodes) {
		errs = append(errs, <-off)
	}
	return errors.Join(errs...)
}

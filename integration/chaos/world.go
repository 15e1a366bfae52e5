package chaos

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
)

// world is a cluster and all that watches it.
type world struct {
	cfg     Config
	lab     *lab.Lab
	cluster *lab.Cluster
	rec     *history.Recorder
	players []*player
	homes   map[string]string // address -> node
	clients []*clients        // as the nodes
	have    need
	clock   int    // the node whose clock can be wrong
	scripts string // directory of the Python programs

	mu      sync.Mutex
	touched []int // nodes of the present step
	number  int
}

// player is a played minion with its place.
type player struct {
	*play.Minion
	addr string
	node string
}

func (w *world) node(i int) *lab.Node { return w.cluster.Nodes[i] }

// sides are the hosts of a step's nodes, and those of the other nodes.
func (w *world) sides(s Step) (in, out []*lab.Host) {
	for i, n := range w.cluster.Nodes {
		if slices.Contains(s.Nodes, i) {
			in = append(in, n.Host)
		} else {
			out = append(out, n.Host)
		}
	}
	return in, out
}

func (w *world) pair(s Step) (a, b *lab.Host) {
	return w.node(s.Nodes[0]).Host, w.node(s.Nodes[1]).Host
}

// other is a node that is not n.
func (w *world) other(n *lab.Node) *lab.Node {
	for _, o := range w.cluster.Nodes {
		if o != n {
			return o
		}
	}
	return nil
}

// lie tells all that runs on a node the same.
func (w *world) lie(n *lab.Node, s lab.Seams) error {
	master := lab.Seams{Clock: s.Clock} // a slow disk of stock Salt's is not what is tried
	return errors.Join(n.Daemon.SetSeams(s), n.Master.SetSeams(master))
}

// restore undoes whatever has been done to any node: it is called after each step.
func (w *world) restore(ctx context.Context) error {
	errs := []error{w.lab.Heal(ctx)}
	for i, n := range w.cluster.Nodes {
		errs = append(errs, n.PowerOn(ctx))
		if w.have&disks != 0 {
			errs = append(errs, n.FreeDisk())
		}
		if w.have&(seams|clockSeam) != 0 {
			errs = append(errs, w.lie(n, lab.Seams{}))
		}
		for _, p := range []*lab.Process{n.Daemon.Process, n.Master.Process} {
			if p.Running() {
				errs = append(errs, p.Resume())
				continue
			}
			w.rec.Note("%s is started again, its exit code was %d", p, p.ExitCode())
			errs = append(errs, p.Start(ctx))
		}
		errs = append(errs, w.clients[i].ensure(ctx))
	}
	return errors.Join(errs...)
}

// faultOf is how the history tells of a step.
func (w *world) faultOf(s Step, k Kind) history.Fault {
	f := history.Fault{Kind: s.String(), Outlasted: k.late, Caught: k.caught}
	if k.cuts {
		a, b := w.pair(s)
		f.Cuts = append(f.Cuts, [2]string{a.Name, b.Name})
		return f
	}
	if k.Name == "isolated minority" {
		in, out := w.sides(s)
		for _, a := range in {
			for _, b := range out {
				f.Cuts = append(f.Cuts, [2]string{a.Name, b.Name})
			}
		}
		return f
	}
	for _, i := range s.Nodes {
		f.Nodes = append(f.Nodes, w.node(i).Name)
	}
	return f
}

func (w *world) setTouched(nodes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched = nodes
}

// whole are the nodes that no step touches at the moment.
func (w *world) whole() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []int
	for i := range w.cluster.Nodes {
		if !slices.Contains(w.touched, i) {
			out = append(out, i)
		}
	}
	return out
}

// Subscribed, Ran and Returned make the world a play.Observer.
func (w *world) Subscribed(m *play.Minion, addr string, from, to time.Time, why error) {
	w.rec.Presence(history.Presence{Minion: m.ID, Node: w.homes[addr], From: from, To: to, Ended: time.Now(),
		Why: why.Error()})
}

// Ran implements play.Observer.
func (w *world) Ran(m *play.Minion, j play.Job) {
	w.rec.Run(history.Run{Minion: m.ID, Jid: j.Jid, Number: j.Number, At: time.Now()})
}

// Returned implements play.Observer.
func (w *world) Returned(m *play.Minion, j play.Job, first string, at, acked time.Time, tries int) {
	w.rec.Return(history.Return{
		Minion: m.ID, Node: w.homes[first], Jid: j.Jid, Number: j.Number, At: at, Acked: acked, Tries: tries,
	})
}

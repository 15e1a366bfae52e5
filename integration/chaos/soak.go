package chaos

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
)

// SoakConfig is a steady load with slow masters and peers, and with clients that are slow or too fast.
type SoakConfig struct {
	For     time.Duration
	Ceiling int // MiB of resident memory that no saltclusterd may exceed
	Rate    int // requests a second of the flooding minions
	Deaf    int // connections to each node that ask for files and read nothing
}

// DefaultSoak is what "make soak" runs without arguments. The limits of its daemons are far below the usual ones, so
// that each is reached; the ceiling is what docs/contributing/queues.md says they add up to.
func DefaultSoak() SoakConfig { return SoakConfig{For: time.Hour, Ceiling: 512, Rate: 300, Deaf: 24} }

// soakLimits of each saltclusterd.
var soakLimits = lab.Settings{
	"max_request_memory": "64MiB", "pub_queue_bytes": "16MiB", "memory_limit": "384MiB",
	"health_trusted": []string{"10.99.0.0/24", "127.0.0.0/8"},
}

// Soak loads a cluster of three for as long as told. What it returns besides the history is a table of what was seen of
// each queue.
func Soak(ctx context.Context, l *lab.Lab, c SoakConfig) (*SoakReport, error) {
	cfg := Default()
	cfg.Nodes, cfg.Calm, cfg.Padding, cfg.Daemon, cfg.Stock = 3, true, 128<<10, soakLimits, nil
	w, err := newWorld(ctx, l, cfg)
	if err != nil {
		return nil, err
	}
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if err := w.watch(watch, &watching); err != nil {
		stop()
		watching.Wait()
		return nil, err
	}
	m := newMeter(w, c.Ceiling)
	load, stopLoad := context.WithTimeout(ctx, c.For)
	var loading sync.WaitGroup
	for _, f := range []func(context.Context){w.publish, w.events, m.run, w.slowMaster, w.slowPeer} {
		loading.Go(func() { f(load) })
	}
	n := newNuisance(w, c)
	loading.Go(func() { n.run(load) })
	loading.Wait()
	stopLoad()
	err = w.recovered(ctx)
	if err == nil {
		err = w.settle(ctx)
	}
	stop()
	watching.Wait()
	for _, k := range w.clients {
		k.close()
	}
	if err != nil {
		return nil, err
	}
	m.sample(ctx)
	report := m.report()
	report.Nuisance = n.String()
	if report.History, err = w.soaked(ctx); err == nil {
		report.Violations = append(report.Violations, safety(history.Check(report.History, history.DefaultOptions()))...)
	}
	return report, err
}

// safety leaves out how fast others are answered: the flood is a hundred times what three masters on two cores can do,
// and their Python takes requests in turn.
func safety(all []history.Violation) []history.Violation {
	return slices.DeleteFunc(all, func(v history.Violation) bool {
		return v.Rule == history.RuleAnswered || v.Rule == history.RuleEventLost
	})
}

// soaked reads what the end shows.
func (w *world) soaked(ctx context.Context) (*history.History, error) {
	err := w.judgeable(ctx, &operator{})
	return w.rec.History(), err
}

const (
	slowEvery = 30 * time.Second
	slowFor   = 6 * time.Second
)

// slowMaster pauses one master after the other.
func (w *world) slowMaster(ctx context.Context) {
	for i := 0; backoff.Sleep(ctx, slowEvery); i++ {
		n := w.node(i % len(w.cluster.Nodes))
		w.hold(ctx, n, "slow salt-master", n.Master.Process)
	}
}

// slowPeer pauses the last node's saltclusterd now and then, in between the masters' pauses.
func (w *world) slowPeer(ctx context.Context) {
	n := w.node(len(w.cluster.Nodes) - 1)
	for backoff.Sleep(ctx, slowEvery/2); backoff.Sleep(ctx, slowEvery); {
		w.hold(ctx, n, "slow peer", n.Daemon.Process)
	}
}

// hold pauses a process for a while. What it missed may come back to it for some seconds more.
func (w *world) hold(ctx context.Context, n *lab.Node, kind string, p *lab.Process) {
	over := w.rec.Fault(history.Fault{Kind: kind, Nodes: []string{n.Name}})
	if err := p.Pause(); err != nil {
		w.rec.Note("pause %s: %v", p, err)
	}
	backoff.Sleep(ctx, slowFor)
	if err := p.Resume(); err != nil {
		w.rec.Note("resume %s: %v", p, err)
	}
	time.AfterFunc(slowFor, over)
}

// SoakReport is what a soak found.
type SoakReport struct {
	History    *history.History
	Violations []history.Violation
	Memory     []MemoryLine
	Queues     []QueueLine
	Nuisance   string
}

// MemoryLine is the resident memory of one saltclusterd, in MiB.
type MemoryLine struct {
	Node                     string
	Start, Early, Late, Peak int // Early and Late: medians of the second and the last quarter
	Samples                  int
}

// QueueLine is the highest value seen of a gauge on any node, or the sum of a counter.
type QueueLine struct {
	Metric string
	Value  float64
}

func (m MemoryLine) String() string {
	return fmt.Sprintf("%s: %d MiB at the start, median %d in the second quarter, %d in the last, peak %d (%d samples)",
		m.Node, m.Start, m.Early, m.Late, m.Peak, m.Samples)
}

// Print writes the report.
func (r *SoakReport) Print(w io.Writer) {
	fmt.Fprintln(w, r.History.Summary())
	fmt.Fprintln(w, r.Nuisance)
	for _, m := range r.Memory {
		fmt.Fprintln(w, m)
	}
	for _, q := range r.Queues {
		fmt.Fprintf(w, "  %-110s %g\n", q.Metric, q.Value)
	}
	if len(r.Violations) > 0 {
		r.History.Print(w, r.Violations...)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, "VIOLATION", v)
	}
}

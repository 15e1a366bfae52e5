package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/scale"
)

// sights are the figures of one size of herd.
type sights struct {
	Minions int
	// Jobs that all return, and jobs that all hear and few return.
	All, Few jobsSeen

	// MiB, before the first job and after the last one, of the nodes and of HAProxy.
	Memory, MemoryAfter, ProxyMemory, ProxyMemoryAfter resident

	Storm stormSeen

	Keys     []time.Duration // each of them, until it is on all nodes
	KeyShare float64         // of the machine, that others left meanwhile
	Trees    []treeSeen
}

// jobsSeen are figures of jobs that many minions return.
type jobsSeen struct {
	Heard, Acked, Cached, Copied     series // s, from the first minion that had the job
	Share                            series // of the machine, that others left meanwhile
	Pace                             series // s, that the meter's piece of work took
	CPU                              map[string]series
	Sent, Got, OthersSent, OthersGot series // MiB
}

// stormSeen is the death of a node.
type stormSeen struct {
	Lost                     float64
	Served, SignIns, Slowest float64
	Share, Pace              float64            // until the slowest had signed in
	CPU                      map[string]float64 // s, until the last was served
	Early                    map[string]float64 // until the slowest had signed in
	After                    map[string]float64 // and until all is quiet again
	Outages, SignInTimes     []time.Duration    // sorted
}

// unhurried masters do not clean and list, by themselves and once a minute, what the jobs and trees before have left, as it would be in one
// measurement and not in another: the model has no Python.
// roots_update_interval is for listing (salt/master.py FileserverUpdate.fill_buckets).
var unhurried = lab.Settings{"loop_interval": 1800, "roots_update_interval": 1800}

// Groups of processes whose CPU is told apart, as the model names them.
var modelGroups = []string{"saltclusterd", "saltclusterd, others", "salt-master", "haproxy", "minions"}

// sights forms a cluster and looks at jobs, and at the death of a node.
func (b *bench) sights(ctx context.Context, minions, jobs int, trees []scale.Tree) (s *sights, err error) {
	was := b.herd
	b.herd = minions
	defer func() { b.herd = was }()
	return s, b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		c, h, err := b.herdCluster(ctx, l, nil, unhurried)
		if err != nil {
			return err
		}
		defer h.Close()
		m := &modelLab{bench: b, c: c, p: &pack{target: &target{name: "the cluster"}, herd: h, salt: c.Nodes[0].Master}}
		s = &sights{Minions: minions}
		if err := m.quiet(ctx); err != nil {
			return err
		}
		if err := m.memory(&s.Memory, &s.ProxyMemory); err != nil {
			return err
		}
		for round := range jobs + 1 {
			b.say("model: job %d of %d minions, load %s", round, minions, loadAverage())
			all, few := &s.All, &s.Few
			if round == 0 { // the first one makes connections and caches
				all, few = &jobsSeen{}, &jobsSeen{}
			}
			if err := m.job(ctx, all, "*", minions); err != nil {
				return err
			}
			if err := m.job(ctx, few, fewGlob, modelFew); err != nil {
				return err
			}
		}
		if err := m.memory(&s.MemoryAfter, &s.ProxyMemoryAfter); err != nil {
			return err
		}
		if err := m.keys(ctx, s); err != nil {
			return err
		}
		for i, t := range trees {
			for _, before := range s.Trees {
				t.Beside += before.Files
			}
			seen, err := m.rollOut(ctx, i, t)
			if err != nil {
				return err
			}
			s.Trees = append(s.Trees, seen)
		}
		return m.kill(ctx, &s.Storm)
	})
}

// modelLab is a cluster that is looked at.
type modelLab struct {
	*bench
	c *lab.Cluster
	p *pack
}

// job publishes one, which n minions return, and notes when what has happened.
func (m *modelLab) job(ctx context.Context, s *jobsSeen, target string, n int) error {
	if err := m.quiet(ctx); err != nil {
		return err
	}
	meter, err := m.meter()
	if err != nil {
		return err
	}
	defer meter.end()
	calm := m.bytes()
	if err := rest(ctx, modelRest); err != nil {
		return err
	}
	before := m.bytes()
	jid, err := m.p.publishTo(ctx, target)
	if err != nil {
		return err
	}
	var job herd.Job
	done := make([]time.Time, len(m.c.Nodes))
	ctx, cancel := context.WithTimeout(ctx, jobWithin)
	defer cancel()
	for left := len(done); left > 0 || job.Acked+job.ReturnsLost < n; {
		job = m.p.herd.Job(jid)
		for i, node := range m.c.Nodes {
			if done[i].IsZero() && returnsIn((&pack{salt: node.Master}).jobDir(jid)) >= n {
				done[i] = time.Now()
				left--
			}
		}
		if err := rest(ctx, modelLook); err != nil {
			return fmt.Errorf("%d of %d acknowledged, %d nodes have not all: %w", job.Acked, n, left, err)
		}
	}
	if job.ReturnsLost > 0 {
		return fmt.Errorf("%d returns given up", job.ReturnsLost)
	}
	if err := rest(ctx, modelRest); err != nil { // events, comparisons
		return err
	}
	after, end := m.bytes(), slices.MaxFunc(append(done, job.LastEnd), time.Time.Compare)
	s.Share.add(meter.share(job.FirstHeard, end))
	s.Pace.add(meter.pace(job.FirstHeard, end).Seconds())
	since := func(t time.Time) float64 { return t.Sub(job.FirstHeard).Seconds() }
	s.Heard.add(since(job.LastHeard))
	s.Acked.add(since(job.LastEnd))
	s.Cached.add(since(done[0]))
	s.Copied.add(since(slices.MaxFunc(done[1:], time.Time.Compare)))
	asleep := before.at.Sub(calm.at).Seconds()
	if s.CPU == nil {
		s.CPU = map[string]series{}
	}
	for g, v := range meter.beyondIdle(calm.at, before.at, job.FirstHeard, after.at) {
		all := s.CPU[g]
		all.add(v)
		s.CPU[g] = all
	}
	share := after.at.Sub(before.at).Seconds() / asleep
	for i, of := range []*series{&s.Sent, &s.Got, &s.OthersSent, &s.OthersGot} {
		of.add((after.of[i] - before.of[i] - (before.of[i]-calm.of[i])*share) / mib)
	}
	return nil
}

// resident is memory that processes have, MiB: of their own, and of files (programs, and what is mapped of data).
type resident struct{ Own, Files []float64 }

// memory is that of the nodes, and of the load balancer.
func (m *modelLab) memory(nodes, proxy *resident) error {
	for _, n := range m.c.Nodes {
		if err := nodes.add(n.Daemon.PID()); err != nil {
			return err
		}
	}
	return errors.Join(proxy.add(m.c.LB.PID()), proxy.add(m.c.LBPub.PID()))
}

// keys accepts keys one after the other.
func (m *modelLab) keys(ctx context.Context, s *sights) error {
	m.say("model: %d keys are accepted, load %s", modelKeys, loadAverage())
	meter, err := m.meter()
	if err != nil {
		return err
	}
	defer meter.end()
	began := time.Now()
	s.Keys, err = acceptEach(ctx, m.c, m.p.herd.Key(), modelKeys)
	s.KeyShare = meter.share(began, time.Now())
	return err
}

// modelLook is how often it is looked whether a job is whole: what that costs counts as the minions', whose process it is.
const modelLook = 5 * time.Millisecond

// modelRest is how long nothing is asked of the cluster before a job, and after it.
const modelRest = 3 * time.Second

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// returnsIn counts the minions' directories of a job by its number of links, which costs one system call.
func returnsIn(dir string) int {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2
}

// carried is the bytes that the publisher has sent and got, and the mean of the others.
type carried struct {
	at time.Time
	of [4]float64
}

func (m *modelLab) bytes() carried {
	c := carried{at: time.Now()}
	others := float64(len(m.c.Nodes) - 1)
	for i, n := range m.c.Nodes {
		sent, got := interfaceBytes(n.Host)
		if i == 0 {
			c.of[0], c.of[1] = sent, got
			continue
		}
		c.of[2] += sent / others
		c.of[3] += got / others
	}
	return c
}

// meter begins to look at what everybody uses.
func (m *modelLab) meter() (*meter, error) {
	groups := map[string][]*lab.Process{"haproxy": {m.c.LB.Process, m.c.LBPub.Process}}
	for i, n := range m.c.Nodes {
		g := modelGroups[min(i, 1)]
		groups[g] = append(groups[g], n.Daemon.Process)
		groups["salt-master"] = append(groups["salt-master"], n.Master.Process)
	}
	return startMeter(runtime.NumCPU(), groups)
}

// interfaceBytes are those that a host has sent and got over its interface.
func interfaceBytes(h *lab.Host) (sent, got float64) {
	_ = h.Do(func() error {
		raw, err := os.ReadFile("/proc/thread-self/net/dev")
		if err == nil {
			sent, got = devBytes(string(raw))
		}
		return err
	})
	return sent, got
}

// quiet waits until what went before has come to its end: start events in the masters' Python, mostly.
func (m *modelLab) quiet(ctx context.Context) error {
	meter, err := m.meter()
	if err != nil {
		return err
	}
	defer meter.end()
	for range modelPatience {
		began := time.Now()
		if err := rest(ctx, modelRest); err != nil {
			return err
		}
		var sum time.Duration
		for _, d := range meter.used(began, time.Now()) {
			sum += d
		}
		if sum < modelRest/5 {
			return nil
		}
	}
	return nil
}

// modelPatience is how many rests it waits for quiet.
const modelPatience = 40

// kill kills the last node and waits until its minions are served again.
func (m *modelLab) kill(ctx context.Context, s *stormSeen) error {
	if err := m.quiet(ctx); err != nil {
		return err
	}
	n := m.c.Nodes[len(m.c.Nodes)-1]
	m.say("model: kill -9 saltclusterd of %s, load %s", n.Name, loadAverage())
	m.p.herd.Reset()
	before := m.p.herd.Stats()
	meter, err := m.meter()
	if err != nil {
		return err
	}
	defer meter.end()
	calm := time.Now()
	if err := rest(ctx, modelRest); err != nil {
		return err
	}
	killed := time.Now()
	if err := n.Daemon.Kill(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, failWithin)
	defer cancel()
	st, err := m.p.herd.AwaitServed(within, before)
	if err != nil {
		return err
	}
	s.Lost = float64(st.Disconnects - before.Disconnects)
	s.Served = st.LastServed.Sub(killed).Seconds()
	s.SignIns = float64(st.SignIns - before.SignIns)
	s.Slowest = herd.Quantile(st.SignInTimes, 1).Seconds()
	s.Outages, s.SignInTimes = st.Outages, st.SignInTimes
	crowd := killed.Add(time.Duration(s.Slowest * float64(time.Second)))
	s.Share, s.Pace = meter.share(killed, crowd), meter.pace(killed, crowd).Seconds()
	s.CPU = meter.beyondIdle(calm, killed, killed, st.LastServed)
	s.Early = meter.beyondIdle(calm, killed, killed, crowd)
	if err := m.quiet(ctx); err != nil {
		return err
	}
	over := time.Now()
	if err := rest(ctx, modelRest); err != nil {
		return err
	}
	s.After = meter.beyondIdle(calm, killed, killed, over)
	for g, d := range meter.beyondIdle(over, time.Now(), killed, over) { // what was still to be done before looks like idleness
		s.After[g] = max(s.After[g], d)
	}
	return nil
}

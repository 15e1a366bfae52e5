package main

import (
	"context"
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
	minions                          int
	heard, acked, cached, copied     series // s, from the first minion that had the job
	share                            series // of the machine, that others left meanwhile
	cpu, fewCPU                      map[string]series
	sent, got, othersSent, othersGot series // MiB

	memory, proxyMemory float64 // MiB, of a node that is not the publisher, and of HAProxy

	lost                     float64
	served, signIns, slowest float64
	stormCPU                 float64 // s of saltclusterd
	stormShare, keyShare     float64

	keys  []time.Duration // each of them, until it is on all nodes
	trees []treeSeen
}

// Groups of processes whose CPU is told apart, as the model names them.
var modelGroups = []string{"saltclusterd", "saltclusterd, others", "salt-master", "haproxy", "minions"}

// sights forms a cluster and looks at jobs, and at the death of a node.
func (b *bench) sights(ctx context.Context, minions, jobs int, trees []scale.Tree, out **sights) error {
	was := b.herd
	b.herd = minions
	defer func() { b.herd = was }()
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		c, h, err := b.herdCluster(ctx, l, nil)
		if err != nil {
			return err
		}
		defer h.Close()
		m := &modelLab{bench: b, c: c, p: &pack{target: &target{name: "the cluster"}, herd: h, salt: c.Nodes[0].Master}}
		s := &sights{minions: minions, cpu: map[string]series{}}
		for round := range jobs + 1 {
			b.say("model: job %d of %d minions, load %s", round, minions, loadAverage())
			of := s
			if round == 0 { // the first one makes connections and caches
				of = &sights{cpu: map[string]series{}}
			}
			if err := m.job(ctx, of, "*", minions); err != nil {
				return err
			}
			if minions != modelSmall {
				continue
			}
			few := &sights{cpu: map[string]series{}}
			if err := m.job(ctx, few, fewGlob, modelFew); err != nil {
				return err
			}
			if s.fewCPU == nil {
				s.fewCPU = map[string]series{}
			}
			for g, v := range few.cpu {
				s.fewCPU[g] = append(s.fewCPU[g], v...)
			}
		}
		*out = s
		if err := m.memory(s); err != nil {
			return err
		}
		if err := m.keys(ctx, s); err != nil {
			return err
		}
		for i, t := range trees {
			seen, err := m.rollOut(ctx, i, t)
			if err != nil {
				return err
			}
			s.trees = append(s.trees, seen)
		}
		return m.kill(ctx, s)
	})
}

// modelLab is a cluster that is looked at.
type modelLab struct {
	*bench
	c *lab.Cluster
	p *pack
}

// job publishes one, which n minions return, and notes when what has happened.
func (m *modelLab) job(ctx context.Context, s *sights, target string, n int) error {
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
		if err := rest(ctx, 2*time.Millisecond); err != nil {
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
	s.share.add(meter.share(job.FirstHeard, end))
	since := func(t time.Time) float64 { return t.Sub(job.FirstHeard).Seconds() }
	s.heard.add(since(job.LastHeard))
	s.acked.add(since(job.LastEnd))
	s.cached.add(since(done[0]))
	s.copied.add(since(slices.MaxFunc(done[1:], time.Time.Compare)))
	asleep := before.at.Sub(calm.at).Seconds()
	idle := meter.used(calm.at, before.at)
	for g, d := range meter.used(job.FirstHeard, after.at) {
		all := s.cpu[g]
		all.add(max(0, d.Seconds()-idle[g].Seconds()*after.at.Sub(job.FirstHeard).Seconds()/asleep))
		s.cpu[g] = all
	}
	share := after.at.Sub(before.at).Seconds() / asleep
	for i, of := range []*series{&s.sent, &s.got, &s.othersSent, &s.othersGot} {
		of.add((after.of[i] - before.of[i] - (before.of[i]-calm.of[i])*share) / mib)
	}
	return nil
}

// memory is that of a node after some jobs, and of the load balancer.
func (m *modelLab) memory(s *sights) error {
	for _, p := range []struct {
		of *lab.Process
		to *float64
	}{{m.c.Nodes[1].Daemon.Process, &s.memory}, {m.c.LB.Process, &s.proxyMemory}, {m.c.LBPub.Process, &s.proxyMemory}} {
		b, err := residentBytes(p.of.PID())
		if err != nil {
			return err
		}
		*p.to += b / mib
	}
	return nil
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
	s.keys, err = acceptEach(ctx, m.c, m.p.herd.Key(), modelKeys)
	s.keyShare = meter.share(began, time.Now())
	return err
}

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
func (m *modelLab) kill(ctx context.Context, s *sights) error {
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
	for g, d := range meter.used(killed, time.Now()) {
		if g == modelGroups[0] || g == modelGroups[1] {
			s.stormCPU += d.Seconds()
		}
	}
	s.stormShare = meter.share(killed, killed.Add(time.Duration(s.slowestOf(st)*float64(time.Second))))
	s.lost = float64(st.Disconnects - before.Disconnects)
	s.served = st.LastServed.Sub(killed).Seconds()
	s.signIns = float64(st.SignIns - before.SignIns)
	s.slowest = s.slowestOf(st)
	return nil
}

func (s *sights) slowestOf(st herd.Stats) float64 { return herd.Quantile(st.SignInTimes, 1).Seconds() }

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Trees of which the first two tell what a file costs, and what a MiB.
var (
	smallTrees = []scale.Tree{{Files: 2000, Bytes: 2000 << 10}, {Files: 8, Bytes: 32 << 20}}
	largeTrees = []scale.Tree{{Files: 5000, Bytes: 200 << 20}, {Files: 10_000, Bytes: 10_000 << 10}}
)

// modelKeys is how many keys are accepted one after the other.
const modelKeys = 60

// modelWithin is how far the model may be off.
const modelWithin = 0.25

// model compares integration/scale with what it models: three nodes behind HAProxy with a herd, all on this machine. What CPU each kind of
// process takes is calibrated with a small herd, in the same run; the rest follows from the structure.
func (b *bench) model(ctx context.Context) error {
	costs, note, err := b.modelCosts()
	if err != nil {
		return err
	}
	site := scale.Site{Nodes: 3, Shared: true, Cores: runtime.NumCPU(), ProxyThreads: runtime.NumCPU(), Replicas: 3}
	var small *sights
	if err := b.sights(ctx, modelSmall, modelSmallJobs, smallTrees, &small); err != nil {
		return err
	}
	fixed := calibrate(&site, costs, small)
	calibrateRoots(site, costs, small.trees)
	b.say("model: factors %+v", site.Slower)
	for _, n := range b.modelSizes {
		load := loadAverage()
		var seen *sights
		if err := b.sights(ctx, n, b.modelJobs, largeTrees, &seen); err != nil {
			return err
		}
		b.out.table(fmt.Sprintf("The model and the measured, %d minions", n), fmt.Sprintf(
			"Three nodes behind HAProxy and the played minions, all on this machine. What CPU each kind of process needs was calibrated with %d minions "+
				"in the same run (%s); %s. %d jobs; the median is compared. Load average %s before; others left %s of the machine during the jobs, "+
				"which the model knows.",
			modelSmall, factorsText(site.Slower), note, b.modelJobs, load, seen.share.show("%.2f")),
			[]string{"figure", "model", "measured", "model/measured", fmt.Sprintf("within %.0f %%", modelWithin*100)}, compare(site, costs, fixed, seen))
	}
	return nil
}

const (
	modelSmall     = 500
	modelSmallJobs = 4
	// modelFew have the job and return it while all others only hear: the difference is what returns cost.
	modelFew = 10
	fewGlob  = "herd0000?"
)

func factorsText(f scale.Factors) string {
	return fmt.Sprintf("times the table of costs: publisher %.2f, other nodes %.2f, masters %.2f, HAProxy %.2f, minions %.2f",
		f.Publisher, f.Others, f.Master, f.Proxy, f.Minions)
}

// modelCosts are those of the model, with what can be measured here at once.
func (b *bench) modelCosts() (*scale.Costs, string, error) {
	c := scale.MeasuredCosts()
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, "", err
	}
	sign, err := quickest(20, func() error { _, err := key.Sign(saltcrypt.PKCS1v15SHA1, []byte("how long does it take?")); return err })
	if err != nil {
		return nil, "", err
	}
	c.SignIn += 2*sign - 2*c.Seal
	c.Seal = sign
	f, err := os.Create(filepath.Join(os.TempDir(), "saltcluster-bench-"+rand.Text()))
	if err != nil {
		return nil, "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	c.Fsync, err = quickest(20, func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return f.Sync()
	})
	if fileSystem(os.TempDir()) == "tmpfs" {
		c.SyncFile, c.DiskMiB = 0, 0
	}
	return c, fmt.Sprintf("an RSA private operation takes %s here, an fsync %s (%s)", sign.Round(10*time.Microsecond),
		c.Fsync.Round(10*time.Microsecond), fileSystem(os.TempDir())), err
}

// quickest is the median time of the quicker half of n calls: what others do on the machine meanwhile does not count.
func quickest(n int, f func() error) (time.Duration, error) {
	var took []time.Duration
	for range n {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.25), nil
}

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

// calibrate finds how much more CPU processes take here than the table of costs says, by what more returns cost more, and returns what a
// job costs besides, however few minions return it.
func calibrate(site *scale.Site, costs *scale.Costs, seen *sights) (fixed map[string]float64) {
	s := *site
	s.Minions = seen.minions
	all := scale.NewWorld(s, costs).Job().CPU
	s.Answering = modelFew
	few := scale.NewWorld(s, costs).Job().CPU
	fixed = map[string]float64{}
	of := func(g string) float64 {
		f := (seen.cpu[g].median() - seen.fewCPU[g].median()) / (all[g] - few[g]).Seconds()
		if math.IsNaN(f) || f <= 0 {
			f = 1
		}
		fixed[g] = max(0, seen.fewCPU[g].median()-few[g].Seconds()*f)
		return f
	}
	site.Slower = scale.Factors{
		Publisher: of("saltclusterd"), Others: of("saltclusterd, others"), Master: of("salt-master"), Proxy: of("haproxy"), Minions: of("minions"),
	}
	return fixed
}

// compare is the rows of a table: the model's figures beside the measured ones.
func compare(site scale.Site, costs *scale.Costs, fixed map[string]float64, seen *sights) (rows [][]string) {
	site.Minions = seen.minions
	site.Share = seen.share.median()
	job := scale.NewWorld(site, costs).Job()
	row := func(what string, model float64, measured series, format string) {
		ratio := model / measured.median()
		verdict := "yes"
		if math.IsNaN(ratio) || ratio < 1-modelWithin || ratio > 1+modelWithin {
			verdict = "**no**"
		}
		rows = append(rows, []string{what, fmt.Sprintf(format, model), measured.show(format), fmt.Sprintf("**%.2f**", ratio), verdict})
	}
	row("s until the last minion has the job", job.LastHeard.Seconds(), seen.heard, "%.2f")
	row("s until the last return is acknowledged", job.LastEnd.Seconds(), seen.acked, "%.2f")
	row("s until whole in the publisher's job cache", job.Cached.Seconds(), seen.cached, "%.2f")
	row("s until whole on both replicas", max(job.Copied[1], job.Copied[2]).Seconds(), seen.copied, "%.2f")
	for _, g := range modelGroups {
		row("CPU ms per minion, "+g, (job.CPU[g].Seconds()+fixed[g])*1000/float64(seen.minions), perMinion(seen.cpu[g], seen.minions), "%.3f")
	}
	sent, got := job.Networks[0].Sum()
	row("MiB sent by the publisher", float64(sent)/mib, seen.sent, "%.2f")
	row("MiB sent to it", float64(got)/mib, seen.got, "%.2f")
	sent, got = job.Networks[1].Sum()
	row("MiB sent by another node", float64(sent)/mib, seen.othersSent, "%.2f")
	row("MiB sent to it", float64(got)/mib, seen.othersGot, "%.2f")
	needs := site.Needs(costs)
	row("MiB resident, saltclusterd of another node", (float64(costs.MemBase)+2*float64(needs.Connections*costs.MemConn))/mib, series{seen.memory}, "%.0f")
	row("MiB resident, HAProxy", float64(needs.ProxyMemory)/mib, series{seen.proxyMemory}, "%.0f")
	site.Share = seen.keyShare
	keys := scale.NewWorld(site, costs).Keys(modelKeys, 1)
	for _, q := range []float64{0.5, 0.95} {
		row(fmt.Sprintf("ms until a key is on all nodes, %.0f %% of them", 100*q), millis(keys.Quantile(q)), series{millis(quantile(seen.keys, q))}, "%.0f")
	}
	roots := site
	roots.Slower = scale.Factors{}
	for _, tree := range seen.trees {
		roots.Share = tree.share
		r := scale.NewWorld(roots, costs).Rollout(tree.Tree)
		row(fmt.Sprintf("s until a new tree of %d files, %d MiB, is on all nodes", tree.Files, tree.Bytes>>20), r.Last.Seconds(), series{tree.took}, "%.2f")
		row("– CPU s, of the author and of the others", (r.CPU["author"] + r.CPU["others"]).Seconds(), series{tree.author + tree.others}, "%.2f")
	}
	site.Share = seen.stormShare
	st := scale.NewWorld(site, costs).Storm(int(seen.lost), 0, scale.DefaultVersions)
	row("a node is killed: s until the last minion is served", st.LastServed.Seconds(), series{seen.served}, "%.1f")
	row("– sign-ins", float64(st.SignIns), series{seen.signIns}, "%.0f")
	row("– s, the slowest sign-in", st.Slowest.Seconds(), series{seen.slowest}, "%.2f")
	row("– CPU s of saltclusterd, other nodes", st.CPU["saltclusterd"].Seconds(), series{seen.stormCPU}, "%.2f")
	return rows
}

func perMinion(s series, n int) (out series) {
	for _, v := range s {
		out.add(v * 1000 / float64(n))
	}
	return out
}

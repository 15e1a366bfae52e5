package main

import (
	"fmt"
	"math"
	"strings"

	"saltclusterd/integration/scale"
)

// modelTables puts the model's figures beside the measured ones.
func (b *bench) modelTables(seen *modelSeen) error {
	site := scale.Site{Nodes: 3, Shared: true, Cores: seen.CPUs, ProxyThreads: seen.CPUs, ProxyPerPort: true, Replicas: 3}
	cal := calibrate(site, seen)
	cal.show(b.say)
	for _, r := range bySize(seen.Large) {
		rows := cal.compare(site, r)
		near, ranged := 0, 0
		for _, row := range rows {
			near += btoi(row.near())
			ranged += btoi(!row.near() && row.inRange())
		}
		b.out.table(fmt.Sprintf("The model and the measured, %d minions", r[0].Minions), fmt.Sprintf(
			"Three nodes behind HAProxy and the played minions, all on this machine (%s); measured: %s What CPU each kind of process needs was "+
				"calibrated with %s minions on the same machine: times the table of costs, and besides. Others left %s of the machine during the jobs, and a "+
				"piece of work that took %.0f µs at rest took %s then, which the model knows. Clusters of this size: %d, one after the other; medians are compared. %d of %d figures are within %.0f %%%s.",
			seen.Machine, seen.Run, sizesText(seen.Small), r.all(func(s *sights) series { return s.All.Share }).show("%.2f"),
			micros(seen.Machine.Pace), r.all(func(s *sights) series { return s.All.Pace }).times(1e6).show("%.0f"), len(r), near, len(rows),
			modelWithin*100, rangedText(ranged)),
			[]string{"figure", "model", "measured", "model/measured", "near"}, cells(rows))
	}
	return nil
}

// rangedText says how many figures the median does not settle.
func rangedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d more vary by more than that from one measurement to the next, and are within %.0f %% of the nearer end of what was measured", n, modelWithin*100)
}

func (m machine) String() string {
	text := fmt.Sprintf("an RSA private operation takes %.2f ms; on %s an fsync takes %.2f ms, a MiB %.2f ms, each small file in a sync of all %s", millis(m.Sign), m.Files,
		millis(m.Fsync), millis(m.DiskMiB), m.SyncFile)
	if m.Return == 0 {
		return text
	}
	return text + fmt.Sprintf(", each return %.0f µs; an fsync while all processors are busy %.2f ms; writing a return takes %.0f µs of a processor, a replica's %.0f; "+
		"a played minion checks a sign-in in %.2f ms", micros(m.SyncRet), millis(m.FsyncBusy), micros(m.Return), micros(m.Copy), millis(m.Check))
}

func sizesText(all []*sights) string {
	var sizes []string
	for _, s := range all {
		sizes = append(sizes, fmt.Sprint(s.Minions))
	}
	return strings.Join(sizes, " and ")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// modelRow is one figure of the comparison.
type modelRow struct {
	what     string
	model    float64
	measured series
	format   string
}

func within(model, measured float64) bool {
	q := model / measured
	return q >= 1-modelWithin && q <= 1+modelWithin
}

func (r modelRow) near() bool { return within(r.model, r.measured.median()) }

// fewestRuns of a figure tell how much it varies by itself.
const fewestRuns = 3

// inRange says whether a figure that by itself varies by more than the model may be off is foretold within the range of what was measured,
// or as near to its nearer end as the model has to be.
func (r modelRow) inRange() bool {
	v := r.measured.sorted()
	if len(v) < fewestRuns || v[len(v)-1]-v[0] <= modelWithin*v.median() {
		return false
	}
	return r.model >= v[0]*(1-modelWithin) && r.model <= v[len(v)-1]*(1+modelWithin)
}

func cells(rows []modelRow) (out [][]string) {
	for _, r := range rows {
		verdict := "**no**"
		switch {
		case r.near():
			verdict = "yes"
		case r.inRange():
			verdict = fmt.Sprintf("**no**, within the range of %d", len(r.measured))
		}
		q := r.model / r.measured.median()
		ratio := "–"
		if !math.IsNaN(q) && !math.IsInf(q, 0) {
			ratio = fmt.Sprintf("**%.2f**", q)
		}
		out = append(out, []string{r.what, fmt.Sprintf(r.format, r.model), r.measured.show(r.format), ratio, verdict})
	}
	return out
}

// compare is the rows of a table.
func (c *calibration) compare(site scale.Site, seen runs) (rows []modelRow) {
	pace := seen.all(func(s *sights) series { return s.All.Pace }).median()
	site.Minions, site.Slower = seen[0].Minions, c.slower(pace, factors(c.job))
	site.Share = seen.all(func(s *sights) series { return s.All.Share }).median()
	job := scale.NewWorld(site, c.costs).Job()
	row := func(what string, model float64, measured series, format string) {
		rows = append(rows, modelRow{what, model, measured, format})
	}
	jobs := func(of func(j *jobsSeen) series) series {
		return seen.all(func(s *sights) series { return of(&s.All) })
	}
	row("s until the last minion has the job", job.LastHeard.Seconds(), jobs(func(j *jobsSeen) series { return j.Heard }), "%.3f")
	row("s until the last return is acknowledged", job.LastEnd.Seconds(), jobs(func(j *jobsSeen) series { return j.Acked }), "%.2f")
	row("s until whole in the publisher's job cache", job.Cached.Seconds(), jobs(func(j *jobsSeen) series { return j.Cached }), "%.2f")
	row("s until whole on both replicas", max(job.Copied[1], job.Copied[2]).Seconds(), jobs(func(j *jobsSeen) series { return j.Copied }), "%.2f")
	each := 1000 / float64(site.Minions)
	for _, g := range modelGroups {
		row("CPU ms per minion, "+g, (job.CPU[g].Seconds()+c.job[g].Fixed*c.slowness(pace))*each,
			perMinion(jobs(func(j *jobsSeen) series { return j.CPU[g] }), site.Minions), "%.3f")
	}
	for i, n := range []string{"the publisher", "another node"} {
		sent, got := job.Networks[i].Sum()
		row("MiB sent by "+n, float64(sent)/mib, jobs(func(j *jobsSeen) series { return []series{j.Sent, j.OthersSent}[i] }), "%.2f")
		row("MiB sent to it", float64(got)/mib, jobs(func(j *jobsSeen) series { return []series{j.Got, j.OthersGot}[i] }), "%.2f")
	}
	needs := site.Needs(c.costs)
	memory := func(what string, model int, of func(s *sights) series) {
		row(what, float64(model)/mib, seen.all(of), "%.0f")
	}
	memory("MiB resident, saltclusterd of another node, idle", needs.Idle, func(s *sights) series { return s.Memory.of(1) })
	memory("– after jobs", needs.Idle+c.anyJobs+site.Minions*c.costs.MemJob, func(s *sights) series { return s.MemoryAfter.of(1) })
	memory("MiB resident, HAProxy, idle", needs.ProxyMemory, func(s *sights) series { return series{s.ProxyMemory.sum()} })
	memory("– after jobs", needs.ProxyMemory, func(s *sights) series { return series{s.ProxyMemoryAfter.sum()} })
	site.Share, site.Slower = seen.one(func(s *sights) float64 { return s.KeyShare }).median(), factors(c.job)
	keys := scale.NewWorld(site, c.costs).Keys(modelKeys, 1)
	for _, q := range []float64{0.5, 0.95} {
		row(fmt.Sprintf("ms until a key is on all nodes, %.0f %% of them", 100*q), millis(keys.Quantile(q)),
			seen.one(func(s *sights) float64 { return millis(quantile(s.Keys, q)) }), "%.0f")
	}
	for _, trees := range seen.trees() {
		var last, took, model, measured series
		for _, t := range trees {
			r := c.rollOut(site, t)
			last, took = append(last, r.Last.Seconds()), append(took, t.Took)
			model = append(model, r.CPU["author"].Seconds()+r.CPU["others"].Seconds()+(c.tree[0]+c.tree[1])*c.slowness(t.Pace))
			measured = append(measured, t.Author+t.Others)
		}
		row(fmt.Sprintf("s until a new tree of %d files, %d MiB, is on all nodes", trees[0].Files, trees[0].Bytes>>20), last.median(), took, "%.2f")
		row("– CPU s, of the author and of the others", model.median(), measured, "%.2f")
	}
	storms := func(of func(s *stormSeen) float64) series {
		return seen.one(func(s *sights) float64 { return of(&s.Storm) })
	}
	pace = storms(func(s *stormSeen) float64 { return s.Pace }).median()
	st := c.dies(site, &stormSeen{
		Lost: storms(func(s *stormSeen) float64 { return s.Lost }).median(), Share: storms(func(s *stormSeen) float64 { return s.Share }).median(),
		Pace: pace,
	}, site.Minions)
	row("a node is killed: s until the last minion is served", st.LastServed.Seconds(), storms(func(s *stormSeen) float64 { return s.Served }), "%.1f")
	row("– sign-ins", float64(st.SignIns), storms(func(s *stormSeen) float64 { return s.SignIns }), "%.0f")
	row("– s, the slowest sign-in", st.Slowest.Seconds(), storms(func(s *stormSeen) float64 { return s.Slowest }), "%.2f")
	row("– s until half of them are served", st.Half.Seconds(),
		storms(func(s *stormSeen) float64 { return quantile(s.Outages, 0.5).Seconds() }), "%.2f")
	for _, g := range stormGroups {
		row("– CPU s, "+g, c.stormCPU(st, pace, g), storms(func(s *stormSeen) float64 { return alike(s.After)[g] }), "%.2f")
	}
	return rows
}

// rollOut is the model's view of a tree.
func (c *calibration) rollOut(site scale.Site, t treeSeen) scale.Rollout {
	site.Slower, site.Share = c.slower(t.Pace, scale.Factors{}), t.Share
	return scale.NewWorld(site, c.costs).Rollout(t.Tree)
}

// dies is the model's view of the death of a node.
func (c *calibration) dies(site scale.Site, s *stormSeen, minions int) scale.Storm {
	site.Slower, site.Share = c.slower(s.Pace, scale.Factors{Master: c.dearer("salt-master")}), s.Share
	site.Minions, site.Answering = minions, 0
	return scale.NewWorld(site, c.stormCosts()).Storm(int(s.Lost), 0, scale.DefaultVersions)
}

func perMinion(s series, n int) series { return s.times(1000 / float64(n)) }

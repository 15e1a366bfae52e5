package main

import (
	"fmt"
	"math"
	"strings"

	"saltclusterd/integration/scale"
)

// modelTables puts the model's figures beside the measured ones.
func (b *bench) modelTables(seen *modelSeen) error {
	site := scale.Site{Nodes: 3, Shared: true, Cores: seen.CPUs, ProxyThreads: seen.CPUs, Replicas: 3}
	cal := calibrate(site, seen)
	cal.show(b.say)
	for _, s := range seen.Large {
		rows := cal.compare(site, s)
		near, of := 0, 0
		for _, r := range rows {
			if r.bound == modelWithin {
				of++
				near += btoi(r.near())
			}
		}
		b.out.table(fmt.Sprintf("The model and the measured, %d minions", s.Minions), fmt.Sprintf(
			"Three nodes behind HAProxy and the played minions, all on this machine (%s); measured: %s What CPU each kind of process needs was "+
				"calibrated with %s minions in the same run: times the table of costs, and besides. Others left %s of the machine during the jobs, which "+
				"the model knows. Medians are compared. %d of %d figures are within %.0f %%.",
			seen.Machine, seen.Run, sizesText(seen.Small), s.All.Share.show("%.2f"), near, of, modelWithin*100),
			[]string{"figure", "model", "measured", "model/measured", "near"}, cells(rows))
	}
	return nil
}

func (m machine) String() string {
	return fmt.Sprintf("an RSA private operation takes %.2f ms; on %s an fsync takes %.2f ms, a MiB %.2f ms, each small file in a sync of all %s", millis(m.Sign), m.Files,
		millis(m.Fsync), millis(m.DiskMiB), m.SyncFile)
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
	bound    float64 // how far the model may be off
	why      string  // the bound is another
}

func (r modelRow) near() bool {
	q := r.model / r.measured.median()
	return q >= 1-r.bound && q <= 1+r.bound
}

func cells(rows []modelRow) (out [][]string) {
	for _, r := range rows {
		verdict := "**no**"
		if r.near() {
			verdict = "yes"
		}
		if r.why != "" {
			verdict += ", within " + fmt.Sprintf("%.0f %%: ", r.bound*100) + r.why
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
func (c *calibration) compare(site scale.Site, seen *sights) (rows []modelRow) {
	site.Minions, site.Share, site.Slower = seen.Minions, seen.All.Share.median(), factors(c.job)
	job := scale.NewWorld(site, c.costs).Job()
	row := func(what string, model float64, measured series, format string) {
		rows = append(rows, modelRow{what, model, measured, format, modelWithin, ""})
	}
	row("s until the last minion has the job", job.LastHeard.Seconds(), seen.All.Heard, "%.3f")
	row("s until the last return is acknowledged", job.LastEnd.Seconds(), seen.All.Acked, "%.2f")
	row("s until whole in the publisher's job cache", job.Cached.Seconds(), seen.All.Cached, "%.2f")
	row("s until whole on both replicas", max(job.Copied[1], job.Copied[2]).Seconds(), seen.All.Copied, "%.2f")
	each := 1000 / float64(seen.Minions)
	for _, g := range modelGroups {
		row("CPU ms per minion, "+g, (job.CPU[g].Seconds()+c.job[g].Fixed)*each, perMinion(seen.All.CPU[g], seen.Minions), "%.3f")
	}
	for i, n := range []string{"the publisher", "another node"} {
		sent, got := job.Networks[i].Sum()
		row("MiB sent by "+n, float64(sent)/mib, []series{seen.All.Sent, seen.All.OthersSent}[i], "%.2f")
		row("MiB sent to it", float64(got)/mib, []series{seen.All.Got, seen.All.OthersGot}[i], "%.2f")
	}
	needs := site.Needs(c.costs)
	row("MiB resident, saltclusterd of another node, idle", float64(needs.Idle)/mib, seen.Memory.of(1), "%.0f")
	row("– after jobs", float64(needs.Idle+site.Minions*c.costs.MemJob)/mib, seen.MemoryAfter.of(1), "%.0f")
	row("MiB resident, HAProxy, idle", float64(needs.ProxyMemory)/mib, series{seen.ProxyMemory.sum()}, "%.0f")
	row("– after jobs", float64(needs.ProxyMemory)/mib, series{seen.ProxyMemoryAfter.sum()}, "%.0f")
	site.Share = seen.KeyShare
	keys := scale.NewWorld(site, c.costs).Keys(modelKeys, 1)
	for _, q := range []float64{0.5, 0.95} {
		row(fmt.Sprintf("ms until a key is on all nodes, %.0f %% of them", 100*q), millis(keys.Quantile(q)), series{millis(quantile(seen.Keys, q))}, "%.0f")
	}
	for _, tree := range seen.Trees {
		r := c.rollOut(site, tree)
		row(fmt.Sprintf("s until a new tree of %d files, %d MiB, is on all nodes", tree.Files, tree.Bytes>>20), r.Last.Seconds(), series{tree.Took}, "%.2f")
		row("– CPU s, of the author and of the others", r.CPU["author"].Seconds()+r.CPU["others"].Seconds()+c.tree[0]+c.tree[1], series{tree.Author + tree.Others}, "%.2f")
	}
	st := c.dies(site, &seen.Storm, seen.Minions)
	row("a node is killed: s until the last minion is served", st.LastServed.Seconds(), series{seen.Storm.Served}, "%.1f")
	row("– sign-ins", float64(st.SignIns), series{seen.Storm.SignIns}, "%.0f")
	row("– s, the slowest sign-in", st.Slowest.Seconds(), series{seen.Storm.Slowest}, "%.2f")
	row("– s until half of them are served", st.Half.Seconds(), series{quantile(seen.Storm.Outages, 0.5).Seconds()}, "%.2f")
	for _, g := range stormGroups {
		row("– CPU s, "+g, alike(st.CPU)[g].Seconds()+c.storm[g].Fixed, series{alike(seen.Storm.After)[g]}, "%.2f")
	}
	return rows
}

// rollOut is the model's view of a tree.
func (c *calibration) rollOut(site scale.Site, t treeSeen) scale.Rollout {
	site.Slower, site.Share = scale.Factors{}, t.Share
	return scale.NewWorld(site, c.costs).Rollout(t.Tree)
}

// dies is the model's view of the death of a node.
func (c *calibration) dies(site scale.Site, s *stormSeen, minions int) scale.Storm {
	site.Slower, site.Share, site.Minions, site.Answering = factors(c.storm), s.Share, minions, 0
	return scale.NewWorld(site, c.costs).Storm(int(s.Lost), 0, scale.DefaultVersions)
}

func perMinion(s series, n int) (out series) {
	for _, v := range s {
		out.add(v * 1000 / float64(n))
	}
	return out
}

package main

import (
	"fmt"
	"math"

	"saltclusterd/integration/scale"
)

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

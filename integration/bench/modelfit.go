package main

import (
	"cmp"
	"maps"
	"time"

	"saltclusterd/integration/scale"
)

// line is what something costs by size: so many times what the model says, and so much besides, whatever the size.
type line struct{ Factor, Fixed float64 }

// fit finds the line through what the model says of small herds (x) and what was measured (y). Neither part is negative.
func fit(x, y []float64) line {
	n := float64(len(x))
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	if sxx == 0 {
		return line{1, 0}
	}
	if d := n*sxx - sx*sx; d > 0 {
		l := line{Factor: (n*sxy - sx*sy) / d}
		if l.Fixed = (sy - l.Factor*sx) / n; l.Factor > 0 && l.Fixed >= 0 {
			return l
		}
	}
	return line{Factor: sxy / sxx}
}

// calibration is what small herds have told of this machine.
type calibration struct {
	pace       time.Duration // of the machine for which the costs are
	costs      *scale.Costs
	job, storm map[string]line // by group: CPU; of a storm what connections cost, and of masters all
	late       map[string]line // of a storm, by group: what comes one by one when most have signed in
	tree       [2]float64      // CPU of any tree at that pace, s: of its author, and of the others
	anyJobs    int             // memory that jobs take however few minions return, bytes
}

// calibrate finds out how much more CPU processes take here than the table of costs says, from herds that are not those with which the model
// is compared.
func calibrate(site scale.Site, seen *modelSeen) *calibration {
	c := &calibration{pace: seen.Machine.Pace, costs: seen.Machine.costs(), job: map[string]line{}, storm: map[string]line{}, late: map[string]line{}}
	site.Share = 1
	x, y := map[string][]float64{}, map[string][]float64{}
	note := func(at float64, model map[string]time.Duration, measured func(g string) float64) { // all as it were at rest
		for _, g := range modelGroups {
			x[g], y[g] = append(x[g], model[g].Seconds()/at), append(y[g], measured(g)/at)
		}
	}
	for _, s := range seen.Small {
		site.Minions, site.Answering, site.Slower = s.Minions, 0, c.slower(s.All.Pace.median(), scale.Factors{})
		note(c.slowness(s.All.Pace.median()), scale.NewWorld(site, c.costs).Job().CPU, func(g string) float64 { return s.All.CPU[g].median() })
		site.Answering, site.Slower = modelFew, c.slower(s.Few.Pace.median(), scale.Factors{})
		note(c.slowness(s.Few.Pace.median()), scale.NewWorld(site, c.costs).Job().CPU, func(g string) float64 { return s.Few.CPU[g].median() })
	}
	for _, g := range modelGroups {
		c.job[g] = fit(x[g], y[g])
	}
	clear(x)
	clear(y)
	// RSA, requests and events of a storm are measured by themselves. What a connection costs that breaks and is made anew is an estimate:
	// it is what is left over. How much of it is done when the slowest has signed in depends on what it costs, hence the rounds.
	for range 5 {
		clear(x)
		clear(y)
		for _, s := range seen.Small {
			all := c.dies(site, &s.Storm, s.Minions).Early
			known := c.withoutConnections().dies(site, &s.Storm, s.Minions).Early
			known["salt-master"] = 0
			at := c.slowness(s.Storm.Pace)
			for _, g := range stormGroups {
				rest := alike(known)[g].Seconds()
				x[g] = append(x[g], (alike(all)[g].Seconds()-rest)/c.dearer(g)/at)
				y[g] = append(y[g], (alike(s.Storm.Early)[g]-rest)/at)
			}
		}
		for _, g := range stormGroups {
			c.storm[g] = fit(x[g], y[g])
		}
	}
	// Those of 3006 come back one by one in the ten seconds after that: each wakes everybody on its way, and costs more than in a crowd.
	clear(x)
	clear(y)
	for _, s := range seen.Small {
		st, at := c.dies(site, &s.Storm, s.Minions), c.slowness(s.Storm.Pace)
		for _, g := range stormGroups {
			x[g] = append(x[g], (alike(st.CPU)[g]-alike(st.Early)[g]).Seconds()/at)
			y[g] = append(y[g], max(0, alike(s.Storm.After)[g]-alike(s.Storm.Early)[g])/at)
		}
	}
	for _, g := range stormGroups {
		c.late[g] = fit(x[g], y[g])
	}
	c.memory(seen.Small)
	c.trees(site, runs(seen.Small).trees())
	return c
}

// withoutConnections is the same where a new connection costs nothing.
func (c *calibration) withoutConnections() *calibration {
	costs := *c.costs
	costs.Connect, costs.ProxyConnect, costs.MinionConnect = 0, 0, 0
	return &calibration{pace: c.pace, costs: &costs, storm: c.storm}
}

// slower is factors of processes where the piece of work takes so long, s: all of them at the same pace.
func (c *calibration) slower(pace float64, f scale.Factors) scale.Factors {
	by := c.slowness(pace)
	for _, of := range []*float64{&f.Publisher, &f.Others, &f.Master, &f.Proxy, &f.Minions} {
		*of = by * cmp.Or(*of, 1)
	}
	return f
}

// slowness is how many times as long as on the machine at rest everything takes.
func (c *calibration) slowness(pace float64) float64 {
	if c.pace == 0 || pace == 0 {
		return 1
	}
	return pace / c.pace.Seconds()
}

// dearer is how many times as much connections cost as the table says, or all that masters do in a storm.
func (c *calibration) dearer(g string) float64 {
	if l, ok := c.storm[g]; ok {
		return max(l.Factor, 0.05)
	}
	return 1
}

// stormCosts are those with the connections that were found.
func (c *calibration) stormCosts() *scale.Costs {
	costs := *c.costs
	for g, d := range map[string]*time.Duration{"saltclusterd": &costs.Connect, "haproxy": &costs.ProxyConnect, "minions": &costs.MinionConnect} {
		*d = time.Duration(float64(*d) * c.dearer(g))
	}
	return &costs
}

// stormCPU is what a storm needs at a pace, s, with what comes late.
func (c *calibration) stormCPU(st scale.Storm, pace float64, g string) float64 {
	fixed := (c.storm[g].Fixed + c.late[g].Fixed) * c.slowness(pace)
	return alike(st.Early)[g].Seconds() + (alike(st.CPU)[g]-alike(st.Early)[g]).Seconds()*c.late[g].Factor + fixed
}

// stormGroups are those of a storm, in which one node is like another.
var stormGroups = append([]string{modelGroups[0]}, modelGroups[2:]...)

// alike is the figures of a storm with those of all nodes in one.
func alike[T time.Duration | float64](of map[string]T) map[string]T {
	out := make(map[string]T, len(of))
	maps.Copy(out, of)
	out[modelGroups[0]] += out[modelGroups[1]]
	delete(out, modelGroups[1])
	return out
}

// memory finds what there is anyway, and what each connection takes.
func (c *calibration) memory(small []*sights) {
	var minions, node, after, proxy []float64
	for _, s := range small {
		minions, node = append(minions, float64(s.Minions)), append(node, s.Memory.of(1).median()*mib)
		after, proxy = append(after, (s.MemoryAfter.of(1).median()-s.Memory.of(1).median())*mib), append(proxy, s.ProxyMemory.sum()*mib)
	}
	l := fit(minions, node)
	c.costs.MemBase, c.costs.MemConn = int(l.Fixed), int(l.Factor*3/2)
	l = fit(minions, after)
	c.costs.MemJob, c.anyJobs = int(l.Factor), int(l.Fixed)
	l = fit(minions, proxy)
	c.costs.MemProxyBase, c.costs.MemProxy = int(l.Fixed), int(l.Factor/2)
}

// trees finds what a file and a MiB cost here, what any tree does, and a file that is there already: from small trees of each kind, in the order of
// smallTrees.
func (c *calibration) trees(site scale.Site, seen [][]treeSeen) {
	if len(seen) == 0 {
		return
	}
	any, files, bytes := seen[0], seen[1], seen[2]
	var beside, author, others []float64
	for _, t := range any {
		at := c.slowness(t.Pace)
		beside, author, others = append(beside, float64(t.Beside)), append(author, t.Author/at), append(others, t.Others/at)
	}
	a, o := fit(beside, author), fit(beside, others)
	c.tree = [2]float64{a.Fixed, o.Fixed}
	const nodes = 3
	c.costs.WalkFile = time.Duration((a.Factor + o.Factor) / nodes * float64(time.Second))
	scaleBy := func(f float64, costs ...*time.Duration) {
		for _, d := range costs {
			*d = time.Duration(float64(*d) * max(f, 0.05))
		}
	}
	// off is how many times as much as the model says was measured.
	off := func(of []treeSeen, who string, fixed float64, measured func(treeSeen) float64) float64 {
		var model, seen float64
		for _, t := range of {
			at := c.slowness(t.Pace)
			model, seen = model+c.rollOut(site, t).CPU[who].Seconds()/at, seen+measured(t)/at-fixed
		}
		return seen / model
	}
	byAuthor, byOthers := func(t treeSeen) float64 { return t.Author }, func(t treeSeen) float64 { return t.Others }
	for range 5 { // each of the two trees costs a little of the other kind
		scaleBy(off(files, "author", c.tree[0], byAuthor), &c.costs.ScanFile, &c.costs.ServeFile)
		scaleBy(off(files, "others", c.tree[1], byOthers), &c.costs.StageFile, &c.costs.SwitchFile)
		scaleBy(off(bytes, "author", c.tree[0], byAuthor), &c.costs.ScanMiB, &c.costs.ServeMiB)
		scaleBy(off(bytes, "others", c.tree[1], byOthers), &c.costs.StageMiB)
	}
}

// show tells what was found.
func (c *calibration) show(say func(string, ...any)) {
	for _, g := range modelGroups {
		say("model: %s: a job %.2f times the table and %.3f s, a storm's connections %.2f times and %.3f s, what comes late %.2f times and %.3f s", g,
			c.job[g].Factor, c.job[g].Fixed, c.storm[g].Factor, c.storm[g].Fixed, c.late[g].Factor, c.late[g].Fixed)
	}
	k := c.costs
	say("model: memory %.1f MiB and %d B for a connection, %.1f MiB for jobs and %d B for a minion that returned; HAProxy %.1f MiB and %d B", float64(k.MemBase)/mib, k.MemConn,
		float64(c.anyJobs)/mib, k.MemJob, float64(k.MemProxyBase)/mib, k.MemProxy)
	say("model: a tree %.3f s and %.3f s; a file scanned %s, served %s, staged %s, switched %s, walked %s; a MiB scanned %s, served %s, staged %s", c.tree[0], c.tree[1],
		k.ScanFile, k.ServeFile, k.StageFile, k.SwitchFile, k.WalkFile, k.ScanMiB, k.ServeMiB, k.StageMiB)
}

// factors are those of a job or of a storm.
func factors(l map[string]line) scale.Factors {
	return scale.Factors{
		Publisher: l["saltclusterd"].Factor, Others: l["saltclusterd, others"].Factor, Master: l["salt-master"].Factor,
		Proxy: l["haproxy"].Factor, Minions: l["minions"].Factor,
	}
}

// costs are those of the model, with what can be measured of a machine at once.
func (m machine) costs() *scale.Costs {
	c := scale.MeasuredCosts()
	c.SignIn += 2*m.Sign - 2*c.Seal
	c.Seal, c.Fsync, c.RaftStore, c.SyncFile, c.DiskMiB = m.Sign, m.Fsync, 2*m.Fsync, m.SyncFile, m.DiskMiB
	c.FsyncBusy = max(m.Fsync, m.FsyncBusy)
	c.Apply, c.CopyIn, c.SyncRet, c.MinionSignIn = m.Return, m.Copy, m.SyncRet, m.Check
	return c
}

// of is what one process has, of its own and of files.
func (r resident) of(i int) series { return series{r.Own[i] + r.Files[i]} }

// sum is what all have.
func (r resident) sum() (sum float64) {
	for i := range r.Own {
		sum += r.Own[i] + r.Files[i]
	}
	return sum
}

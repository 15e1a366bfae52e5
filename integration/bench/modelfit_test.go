package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/scale"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want line
	}{
		{[]float64{1, 2, 4}, []float64{5, 8, 14}, line{3, 2}},
		{[]float64{1, 3}, []float64{2, 6}, line{2, 0}},
		{[]float64{1, 2}, []float64{1, 4}, line{1.8, 0}}, // no process does less than nothing
		{[]float64{1, 2}, []float64{4, 3}, line{2, 0}},   // nor does more work cost less
		{[]float64{2, 2}, []float64{3, 5}, line{2, 0}},
		{[]float64{0, 0}, []float64{3, 5}, line{1, 0}},
	} {
		got := fit(c.x, c.y)
		if math.Abs(got.Factor-c.want.Factor) > 1e-9 || math.Abs(got.Fixed-c.want.Fixed) > 1e-9 {
			t.Errorf("%v, %v: %+v, not %+v", c.x, c.y, got, c.want)
		}
	}
}

// What a run has saved is what another one reads.
func TestSave(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run")
	seen := &modelSeen{
		Run: "today", CPUs: 2, Machine: machine{
			Sign: time.Millisecond, Fsync: time.Second, FsyncBusy: 2 * time.Second, Check: time.Millisecond, Return: 50 * time.Microsecond,
			Copy: 30 * time.Microsecond, Pace: 100 * time.Microsecond, Files: "ext4",
		},
		Small: []*sights{{Minions: 3, All: jobsSeen{Heard: series{1, 2}, CPU: map[string]series{"haproxy": {3}}}, Memory: resident{Own: []float64{1}, Files: []float64{2}}}},
		Large: []*sights{{Keys: []time.Duration{4}, Trees: []treeSeen{{Tree: scale.Tree{Files: 1, Bytes: 2}, Took: 3}}, Storm: stormSeen{Lost: 1, After: map[string]float64{"minions": 2}}}},
	}
	if err := seen.save(name); err != nil {
		t.Fatal(err)
	}
	got, err := (&bench{options: options{against: name}}).modelSeen(t.Context())
	if err != nil || !reflect.DeepEqual(got, seen) {
		t.Errorf("%v: %+v, not %+v", err, got, seen)
	}
	if err := os.WriteFile(name, []byte("nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (&bench{options: options{against: name}}).modelSeen(t.Context()); err == nil {
		t.Error("anything is taken for measurements")
	}
}

// What an older program has saved is not compared as if what it did not measure cost nothing.
func TestAnOlderProgramsMeasurementsAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run")
	whole := func() *modelSeen {
		m := machine{Sign: 1, Fsync: 1, FsyncBusy: 1, Check: 1, Return: 1, Copy: 1, Pace: 1}
		return &modelSeen{Machine: m, Small: []*sights{{Trees: []treeSeen{{}}}, {}}}
	}
	for _, c := range []struct{ lacks, was, is string }{
		{"", "", ""},
		{"Machine.FsyncBusy", `"FsyncBusy":1,`, ""},
		{"Machine.Check", `"Check":1`, `"Check":0`}, // added to by a newer program
		{"Machine.SyncRet", `"SyncRet":0,`, ""},
		{"Small.Storm.After", `"After":null,`, ""},
		{"Small.Trees.Author", `"Author":0,`, ""},
		{"Large", `,"Large":null`, ""},
	} {
		raw, err := json.Marshal(whole())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(raw), c.was, c.is, 1)
		if (text == string(raw)) != (c.lacks == "") {
			t.Fatalf("%s is not in %s", c.was, raw)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = (&bench{options: options{against: name}}).modelSeen(t.Context())
		if c.lacks == "" && err != nil || c.lacks != "" && (err == nil || !strings.Contains(err.Error(), "did not measure "+c.lacks+": measure anew")) {
			t.Errorf("without %s: %v", c.lacks, err)
		}
	}
}

func TestResidentOf(t *testing.T) {
	own, files := residentOf("Name:\tx\nVmRSS:\t   99 kB\nRssAnon:\t   10 kB\nRssFile:\t    4 kB\nRssShmem:\t    1 kB\n")
	if own != 10*kib || files != 5*kib {
		t.Errorf("%v, %v", own, files)
	}
}

// What a process that was killed has used stays used: else it looks as if others used the machine.
func TestTheMeterRemembersWhoWasKilled(t *testing.T) {
	const gone = 1<<22 + 1 // no process has a number beyond PID_MAX_LIMIT
	m := &meter{groups: map[string][]int{"node": {gone}}, cpus: 2, work: newPiece(), last: map[int]time.Duration{gone: time.Minute}}
	m.look()
	if got := m.looks[0].ours["node"]; got != time.Minute {
		t.Errorf("%v", got)
	}
}

// What the model itself says of machines that are slower by known factors is what calibration finds, from herds of other sizes; the table
// that is made of it has no figure that is off.
func TestCalibrationFindsWhatIsSo(t *testing.T) {
	truth := scale.Factors{Publisher: 2, Others: 3, Master: 1.5, Proxy: 0.5, Minions: 4}
	site := scale.Site{Nodes: 3, Shared: true, Cores: 2, ProxyThreads: 2, ProxyPerPort: true, Replicas: 3}
	m := machine{
		Sign: time.Millisecond, Fsync: time.Millisecond, Check: time.Millisecond, Return: 50 * time.Microsecond, Copy: 30 * time.Microsecond,
		SyncRet: 20 * time.Microsecond, Pace: 100 * time.Microsecond, Files: "ext4",
	}
	const fixed, lateness = 0.01, 1.5 // s, and how much dearer what comes late is
	const once = 0.5                  // s, of any storm
	// Everything takes longer than at rest, and longer still when the large herd is there, which the piece of work tells.
	play := func(minions int, slowness float64, trees []scale.Tree) *sights {
		s, c := &sights{Minions: minions}, m.costs()
		at := func(f scale.Factors) scale.Factors {
			return (&calibration{pace: m.Pace}).slower(m.Pace.Seconds()*slowness, f)
		}
		pace := m.Pace.Seconds() * slowness
		site.Minions, site.Slower = minions, at(truth)
		for _, few := range []bool{false, true} {
			to := &s.All
			site.Answering = 0
			if few {
				to, site.Answering = &s.Few, modelFew
			}
			j := scale.NewWorld(site, c).Job()
			*to = jobsSeen{Share: series{1}, Pace: series{pace}, CPU: map[string]series{}, Heard: series{j.LastHeard.Seconds()}, Acked: series{j.LastEnd.Seconds()}, Cached: series{j.Cached.Seconds()}}
			for g, d := range j.CPU {
				to.CPU[g] = series{d.Seconds() + fixed*slowness}
			}
		}
		// Of a storm it is the masters and the connections that are dearer.
		site.Answering, site.Slower = 0, at(scale.Factors{Master: truth.Master})
		c.Connect, c.ProxyConnect, c.MinionConnect = 2*c.Connect, c.ProxyConnect/2, 4*c.MinionConnect
		st := scale.NewWorld(site, c).Storm(minions/3, 0, scale.DefaultVersions)
		s.Storm = stormSeen{Share: 1, Pace: pace, Lost: float64(minions / 3), Served: st.LastServed.Seconds(), Early: map[string]float64{}, After: map[string]float64{}}
		for g, d := range st.CPU {
			early := st.Early[g].Seconds() + once*slowness
			s.Storm.Early[g], s.Storm.After[g] = early, early+lateness*(d-st.Early[g]).Seconds()
		}
		for _, r := range []*resident{&s.Memory, &s.MemoryAfter, &s.ProxyMemory, &s.ProxyMemoryAfter} {
			r.Own, r.Files = []float64{1, 10 + float64(minions)/100}, []float64{1, 10}
		}
		c, site.Slower = m.costs(), at(scale.Factors{})
		for cost, by := range map[*time.Duration]float64{&c.ScanFile: 2, &c.ServeFile: 2, &c.StageFile: 0.5, &c.SwitchFile: 0.5, &c.ScanMiB: 0.5, &c.ServeMiB: 0.5, &c.StageMiB: 3, &c.WalkFile: 4} {
			*cost = time.Duration(by * float64(*cost))
		}
		for _, t := range trees {
			for _, before := range s.Trees {
				t.Beside += before.Files
			}
			r := scale.NewWorld(site, c).Rollout(t)
			s.Trees = append(s.Trees, treeSeen{
				Tree: t, Took: r.Last.Seconds(), Share: 1, Pace: pace, Author: r.CPU["author"].Seconds() + fixed*slowness, Others: r.CPU["others"].Seconds() + fixed*slowness,
			})
		}
		return s
	}
	seen := &modelSeen{CPUs: 2, Machine: m, Small: []*sights{play(250, 1.3, smallTrees), play(750, 1.3, smallTrees)}}
	c := calibrate(site, seen)
	for g, want := range map[string]float64{"saltclusterd": 2, "saltclusterd, others": 3, "salt-master": 1.5, "haproxy": 0.5, "minions": 4} {
		if got := c.job[g]; math.Abs(got.Factor-want) > 0.02 || math.Abs(got.Fixed-fixed) > 1e-3 {
			t.Errorf("job, %s: %+v, not %v and %v", g, got, want, fixed)
		}
		if g == "saltclusterd, others" { // in a storm all nodes are alike
			continue
		}
		// Next to nothing of the masters' work comes late.
		if got := c.late[g]; g != "salt-master" && math.Abs(got.Factor-lateness) > 0.05*lateness {
			t.Errorf("late, %s: %+v, not %v", g, got, lateness)
		}
		if got := c.storm[g]; math.Abs(got.Factor-want) > 0.05*want {
			t.Errorf("storm, %s: %+v, not %v", g, got, want)
		}
	}
	if got, want := c.costs.WalkFile, 4*m.costs().WalkFile; math.Abs(float64(got)/float64(want)-1) > 0.02 {
		t.Errorf("a file that is there already: %s, not %s", got, want)
	}
	large := play(2000, 2, largeTrees)
	for _, r := range c.compare(site, runs{large}) {
		if (strings.HasPrefix(r.what, "s until the last") || strings.HasPrefix(r.what, "s until a new tree") || strings.Contains(r.what, "CPU") || strings.Contains(r.what, "is served")) && !r.near() {
			t.Errorf("%s: %v, not %v", r.what, r.model, r.measured)
		}
	}
}

// Runs of one size are one table's, with every figure of each.
func TestRunsOfOneSize(t *testing.T) {
	one := func(minions int, served float64, heard ...float64) *sights {
		return &sights{Minions: minions, All: jobsSeen{Heard: heard}, Storm: stormSeen{Served: served}}
	}
	got := bySize([]*sights{one(10, 1, 1, 2), one(50, 2, 9), one(10, 3, 3)})
	if len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 1 || got[1][0].Minions != 50 {
		t.Fatalf("%v", got)
	}
	if s := got[0].one(func(s *sights) float64 { return s.Storm.Served }); !reflect.DeepEqual(s, series{1, 3}) {
		t.Errorf("%v", s)
	}
	if s := got[0].all(func(s *sights) series { return s.All.Heard }); !reflect.DeepEqual(s, series{1, 2, 3}) {
		t.Errorf("%v", s)
	}
}

// The median judges. Only what varies by itself, and was measured often enough to know, may be said to be within the range.
func TestWithinTheRange(t *testing.T) {
	for _, c := range []struct {
		model         float64
		measured      series
		near, inRange bool
	}{
		{1.2, series{1, 1, 1}, true, false},
		{1.3, series{1, 1, 1}, false, false},
		{1.3, series{0.95, 1, 1.1}, false, false}, // it does not vary
		{1.3, series{1, 1, 2}, false, true},
		{2.4, series{1, 1, 2}, false, true},
		{2.6, series{1, 1, 2}, false, false},
		{0.7, series{0.9, 1, 1.2}, false, true},
		{0.6, series{0.9, 1, 1.2}, false, false},
		{1.5, series{0.1, 1}, false, false}, // two do not tell
	} {
		r := modelRow{"", c.model, c.measured, "%.1f"}
		if r.near() != c.near || r.inRange() != c.inRange {
			t.Errorf("%v of %v: near %v, within the range %v", c.model, c.measured, r.near(), r.inRange())
		}
	}
}

// What jobs take however few minions return is not told from a large herd.
func TestFitOfMemory(t *testing.T) {
	var small []*sights
	for _, n := range []int{100, 200, 400} {
		idle := 60 + 0.03*float64(n)
		of := func(mib float64) resident {
			return resident{Own: []float64{mib, mib, mib}, Files: []float64{0, 0, 0}}
		}
		small = append(small, &sights{Minions: n, Memory: of(idle), MemoryAfter: of(idle + 12 + 0.01*float64(n)), ProxyMemory: of(5 + 0.01*float64(n))})
	}
	c := &calibration{costs: scale.MeasuredCosts()}
	c.memory(small)
	if got := float64(c.anyJobs) / mib; math.Abs(got-12) > 0.01 {
		t.Errorf("jobs take %.2f MiB", got)
	}
	if got := float64(c.costs.MemJob) / mib; math.Abs(got-0.01) > 1e-4 {
		t.Errorf("a minion that returned takes %.4f MiB", got)
	}
}

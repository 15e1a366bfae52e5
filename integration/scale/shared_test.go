package scale

import (
	"slices"
	"testing"
	"time"
)

// A played minion that has a job at once returns it before the next one is heard: the network wakes the goroutines that hear, each of them
// starts the one that returns, and that goes first. So the last one hears when nearly all have returned. Where minions think, all hear first.
func TestPlayedMinionsReturnWhatTheyHaveHeard(t *testing.T) {
	const n, hears, returns, cores = 3000, 10 * us, 50 * us, 2
	site := Site{Nodes: 3, Minions: n, Shared: true, Cores: cores}
	costs := lean(func(c *Costs) { c.MinionHears, c.MinionReturns = hears, returns })
	j := NewWorld(site, costs).Job()
	between(t, "hears after the others have returned", j.LastHeard, n*(hears+returns)/cores*98/100, n*(hears+returns)/cores)
	site.Think = [2]time.Duration{time.Second, time.Second}
	j = NewWorld(site, costs).Job()
	between(t, "hears after the others have heard", j.LastHeard, n*hears/cores*98/100, n*hears/cores)
}

// Where each port has a load balancer of its own, publications and requests do not wait for each other there, and both share the cores.
func TestALoadBalancerForEachPort(t *testing.T) {
	const n, message = 2000, 100 * us
	costs := lean(func(c *Costs) { c.Proxy = message })
	for _, apart := range []bool{false, true} {
		w := NewWorld(Site{Nodes: 3, Minions: n, Shared: true, Cores: 2, ProxyThreads: 2, ProxyPerPort: apart}, costs)
		if j := w.Job(); j.CPU[proxyCPU] != 3*n*message {
			t.Errorf("apart %v: used %v", apart, j.CPU[proxyCPU])
		}
		if got := w.pubs.Used; apart && got != n*message || !apart && w.pubs != w.proxy {
			t.Errorf("apart %v: %v for publications", apart, got)
		}
	}
}

// A sync of a file system takes what all have written there: on one disk for all nodes the publisher's returns, too.
func TestASyncTakesWhatAllHaveWritten(t *testing.T) {
	const n, each = 1000, 100 * us
	site := Site{Nodes: 2, Minions: n, Cores: 2}
	costs := lean(func(c *Costs) { c.SyncRet = each })
	w := NewWorld(site, costs)
	w.Job()
	if got := w.nodes[1].disk.busy; got != n*each {
		t.Errorf("a disk of its own was busy for %v", got)
	}
	site.Shared = true
	w = NewWorld(site, costs)
	w.Job()
	if got := w.disk.busy; got != 2*n*each {
		t.Errorf("the disk of both was busy for %v", got)
	}
}

// A goroutine that has waited for the disk is behind those that came meanwhile.
func TestWhoWaitedForTheDiskWaitsInLine(t *testing.T) {
	s := NewSim(1)
	p := s.NewHost("h", 1).NewProc("p", 0)
	var order []string
	p.Do(ms, nil)
	for _, what := range []string{"in line", "woken", "from the disk"} {
		done := func() { order = append(order, what) }
		switch what {
		case "woken":
			p.Next(ms, done)
		case "in line":
			p.Do(ms, done)
		default:
			p.Each(1, func(int) time.Duration { return ms }, func(int) {}, done)
		}
	}
	s.Run(forever)
	if len(order) != 3 || order[0] != "woken" || order[1] != "in line" {
		t.Errorf("%v", order)
	}
}

// A disk that the machine's host plays takes longer while all processors are busy.
func TestADiskOfABusyMachine(t *testing.T) {
	w := NewWorld(Site{Nodes: 1, Cores: 1}, lean(func(c *Costs) { c.Fsync, c.FsyncBusy = ms, 5*ms }))
	n := w.nodes[0]
	if n.fsync() != ms {
		t.Errorf("idle: %v", n.fsync())
	}
	n.daemon.Do(ms, nil)
	if n.fsync() != 5*ms {
		t.Errorf("busy: %v", n.fsync())
	}
	w.Sim.Run(forever)
	if n.fsync() != ms {
		t.Errorf("idle again: %v", n.fsync())
	}
}

// So many connections of a herd are in the making at a time, the others in the order in which they are asked for; what else the herd has to
// do comes between.
func TestAHerdDialsSoManyAtATime(t *testing.T) {
	w := NewWorld(Site{Nodes: 2, Shared: true, Cores: 1}, lean(func(c *Costs) { c.MinionConnect = 4 * ms }))
	st := &storming{w: w}
	var order []int
	for i := range 3 * dialers {
		st.dial(func() { order = append(order, i) })
	}
	if st.dialling != dialers || st.undialled.len() != 2*dialers {
		t.Errorf("%d are dialled, %d wait", st.dialling, st.undialled.len())
	}
	between := 0
	w.herd.Do(ms, func() { between = len(order) })
	w.Sim.Run(forever)
	if len(order) != 3*dialers || !slices.IsSorted(order) || between < dialers || between > dialers+1 || w.Sim.Now() != 3*dialers*ms+ms {
		t.Errorf("%v; %d before what came meanwhile; all after %v", order, between, w.Sim.Now())
	}
	// With machines of their own minions do not wait for each other.
	st = &storming{w: NewWorld(Site{Nodes: 2}, lean(func(*Costs) {}))}
	for range 3 * dialers {
		st.dial(func() {})
	}
	if st.undialled.len() > 0 {
		t.Errorf("%d wait", st.undialled.len())
	}
}

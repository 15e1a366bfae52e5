package scale

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// lean costs nothing but what a test sets.
func lean(set func(c *Costs)) *Costs {
	c := &Costs{PubBytes: 800, ReturnBytes: 700, AckBytes: 150, RelayBytes: 100, CopyBytes: 60}
	set(c)
	return c
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v, and should be %v to %v", what, got, low, high)
	}
}

func TestDeterminism(t *testing.T) {
	site := Site{Nodes: 5, Minions: 2000, Think: [2]time.Duration{0, time.Second}}
	for name, run := range map[string]func(w *World) any{
		"job":   func(w *World) any { return w.Job() },
		"storm": func(w *World) any { return w.Storm(time.Second, DefaultVersions) },
		"keys":  func(w *World) any { return w.Keys(10, 40) },
	} {
		a, b := run(NewWorld(site, MeasuredCosts())), run(NewWorld(site, MeasuredCosts()))
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs with one seed differ:\n%+v\n%+v", name, a, b)
		}
		if name == "keys" {
			continue // nothing in it is left to chance
		}
		other := site
		other.Seed = 2
		if c := run(NewWorld(other, MeasuredCosts())); reflect.DeepEqual(a, c) {
			t.Errorf("%s: another seed changes nothing", name)
		}
	}
}

// Nothing is lost or made: every minion hears, returns and is acknowledged; what one node sends between nodes another
// one gets; the CPU used is the costs of what was done.
func TestJobConserves(t *testing.T) {
	for _, site := range []Site{
		{Nodes: 1, Minions: 500}, {Nodes: 3, Minions: 3000}, {Nodes: 3, Minions: 3000, Cores: 2},
		{Nodes: 10, Minions: 5000, Replicas: 3, Payload: 20_000}, {Nodes: 3, Minions: 20_000}, {Nodes: 50, Minions: 5000},
	} {
		c := MeasuredCosts()
		j := NewWorld(site, c).Job()
		if j.Heard != site.Minions || j.Acked != site.Minions || j.Lost+j.Retries+j.Kept > 0 {
			t.Errorf("%+v: heard %d, acknowledged %d, lost %d, sent again %d, kept %d", site, j.Heard, j.Acked, j.Lost,
				j.Retries, j.Kept)
		}
		m := site.Minions
		if want := time.Duration(m) * c.BusEvent; j.CPU["salt-master"] != want {
			t.Errorf("%+v: the master used %v, not %v", site, j.CPU["salt-master"], want)
		}
		if j.Cached == 0 || j.Cached > j.LastEvent+time.Minute || site.Nodes > 1 && slices.Max(j.Copied) < j.Cached {
			t.Errorf("%+v: cached %v, copied %v, last event %v", site, j.Cached, j.Copied, j.LastEvent)
		}
	}
}

// With one cost only, a job takes what that one takes.
func TestJob_SingleCost(t *testing.T) {
	const n, each = 6000, 50 * time.Microsecond
	site := Site{Nodes: 3, Minions: n, Cores: 4, Bandwidth: 1e12}
	run := func(set func(c *Costs)) Job { return NewWorld(site, lean(set)).Job() }
	j := run(func(c *Costs) { c.Apply = each })
	between(t, "files are written by one goroutine", j.Cached, n*each, n*each+50*time.Millisecond)
	between(t, "which nobody waits for", j.LastEnd, 0, 50*time.Millisecond)
	j = run(func(c *Costs) { c.Reply = 2 * each })
	between(t, "one goroutine answers the publisher's own third, and hands on the others' answers", j.LastEnd, n/2*2*each,
		n/2*2*each+50*time.Millisecond)
	j = run(func(c *Costs) { c.RelayIn = each })
	between(t, "two thirds are relayed, there and back, and share the cores", j.LastEnd, 2*n/3*each*3/2/4,
		2*n/3*each*3/2/4+50*time.Millisecond)
	j = run(func(c *Costs) { c.CopyIn = each })
	between(t, "a replica writes one batch at a time", slices.Max(j.Copied), linger+n*each,
		linger+n*each+50*time.Millisecond)
	j = run(func(c *Costs) { c.Deliver = each })
	between(t, "each edge's shards write to its third", j.LastHeard, n/3*each/4-10*time.Millisecond,
		n/3*each/4+10*time.Millisecond)
	j = run(func(*Costs) {})
	between(t, "events beyond the burst have a pace", j.LastEvent, (n-4000)*time.Second/2000,
		(n-4000)*time.Second/2000+200*time.Millisecond)
	newer := site
	newer.SaltMajor, newer.Minions = 3008, 8000
	j = NewWorld(newer, lean(func(*Costs) {})).Job()
	between(t, "those of one job have a slower one on 3008", j.LastEvent, 2000*time.Second/500,
		2000*time.Second/500+time.Second)
	j = run(func(c *Costs) { c.Fsync = 10 * time.Millisecond })
	if j.Fsyncs > 10 || j.LastEnd > 50*time.Millisecond {
		t.Errorf("%d fsyncs for %d returns that come together, acknowledged after %v", j.Fsyncs, n, j.LastEnd)
	}
	site.Bandwidth, site.Think = 100e6, [2]time.Duration{time.Second, time.Second}
	j = run(func(*Costs) {})
	pub := time.Duration(float64(n*wire(800)) * 8 / site.Bandwidth * 1e9)
	between(t, "all publications leave by the load balancer's card", j.LastHeard, pub*95/100, pub*105/100)
}

// A publisher that is too slow: others keep what it does not answer within four seconds, and minions hear that in time.
func TestJob_SlowPublisher(t *testing.T) {
	site := Site{Nodes: 3, Minions: 6000, Slower: Factors{Publisher: 100}}
	j := NewWorld(site, MeasuredCosts()).Job()
	if j.Kept == 0 || j.Lost > 0 || j.Acked != site.Minions || j.Cached == 0 {
		t.Errorf("kept %d, lost %d, acknowledged %d, sent again %d, whole after %v", j.Kept, j.Lost, j.Acked, j.Retries,
			j.Cached)
	}
}

func TestStormConserves(t *testing.T) {
	for _, site := range []Site{{Nodes: 2, Minions: 900}, {Nodes: 3, Minions: 9000},
		{Nodes: 3, Minions: 30_000, Cores: 2}} {
		s := NewWorld(site, MeasuredCosts()).Storm(0, DefaultVersions)
		lost := site.Minions / site.Nodes
		if s.Lost != lost || s.SignIns != lost-(lost+2)/3 || s.Tries < s.SignIns {
			t.Errorf("%+v: %+v", site, s)
		}
		between(t, "minions of 3006 wait up to ten seconds", s.LastServed, 9500*time.Millisecond, 2*time.Minute)
	}
}

// Sign-ins have half of the CPUs: so many a second get through, and no more.
func TestStorm_CPUShare(t *testing.T) {
	const cost = 5 * time.Millisecond
	site := Site{Nodes: 3, Minions: 6000, Cores: 4}
	s := NewWorld(site, lean(func(c *Costs) { c.SignIn = cost })).Storm(0, []int{3007})
	least := 1000 * cost / 2 // two nodes, two slots each
	between(t, "two thousand at two nodes", s.LastServed, least, least+500*time.Millisecond)
	between(t, "half of them", s.Half, least/2, least/2+500*time.Millisecond)
	if s.Tries != s.SignIns || s.Failed > 0 {
		t.Errorf("%+v", s)
	}
	// Half a processor: the bucket makes them wait.
	site.Cores, site.Minions = 1, 1200
	s = NewWorld(site, lean(func(c *Costs) { c.SignIn = cost })).Storm(0, []int{3007})
	between(t, "half a processor", s.LastServed, 200*cost*2-200*time.Millisecond, 200*cost*2+500*time.Millisecond)
}

// Who has waited for nearly as long as a minion does is answered after all others, and the queue is bounded; everybody
// gets in in the end.
func TestStorm_SlowSignIns(t *testing.T) {
	site := Site{Nodes: 2, Minions: 24_000, Cores: 2}
	s := NewWorld(site, lean(func(c *Costs) { c.SignIn = 2 * time.Millisecond })).Storm(0, []int{3007})
	if s.SignIns < s.Lost || s.Tries <= s.SignIns {
		t.Errorf("%+v", s)
	}
	between(t, "twelve thousand at one node", s.LastServed, 24*time.Second, 60*time.Second)
}

func TestKeysTakeTheirTime(t *testing.T) {
	for _, nodes := range []int{2, 3, 5, 10, 50} {
		rtt, fsync := 4*time.Millisecond, 3*time.Millisecond
		c := lean(func(c *Costs) { c.Fsync, c.RaftStore = fsync, 2*fsync })
		k := NewWorld(Site{Nodes: nodes, RTT: rtt}, c).Keys(60, 1)
		if len(k.All) != 60 {
			t.Errorf("%d nodes: %d edits", nodes, len(k.All))
		}
		// Two looks, both disks of a majority, there and back, the barrier, the files.
		least := keyDebounce + keySettle + 2*c.RaftStore + rtt + rtt/2 + 3*fsync
		barrier := 2*c.RaftStore + rtt/2
		between(t, "the quickest", k.All[0], least, least+barrier+rtt)
		between(t, "the slowest", k.All[59], least, least+barrier+2*rtt+5*time.Millisecond)
		many := NewWorld(Site{Nodes: nodes, RTT: rtt}, c).Keys(5, 1000)
		between(t, "a thousand at once", many.Quantile(1), least, time.Second)
	}
}

func TestEveryCostHasASource(t *testing.T) {
	c := MeasuredCosts()
	v := reflect.ValueOf(c).Elem()
	if rows := len(c.table()); rows != v.NumField() {
		t.Errorf("%d rows for %d costs", rows, v.NumField())
	}
	for _, r := range c.table() {
		f := v.FieldByName(r.name)
		if !f.IsValid() || f.Addr().Interface() != r.value || f.IsZero() || r.from == "" || r.what == "" {
			t.Errorf("%s", r.name)
		}
	}
}

func TestNeeds(t *testing.T) {
	c := &Costs{MemBase: 1 << 20, MemConn: 1000, MemJob: 3, MemProxyBase: 5, MemProxy: 10}
	got := Site{Nodes: 3, Minions: 10_001}.Needs(c)
	want := Needs{
		Connections: 3334, Worst: 5001, Files: 2*5001 + otherFiles, Memory: 1<<20 + 2*5001*1000 + 3*10_001,
		ProxyConnections: 20_002, ProxyFiles: 40_004 + otherFiles, ProxyMemory: 5 + 200_020,
	}
	if got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

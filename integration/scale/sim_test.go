package scale

import (
	"math"
	"testing"
	"time"
)

func TestThingsHappenInOrder(t *testing.T) {
	s := NewSim(1)
	var got []int
	for i, at := range []time.Duration{5, 3, 5, 1, 3, 0, 9} {
		s.At(at, func() { got = append(got, i) })
	}
	s.At(3, func() { s.After(-1, func() { got = append(got, 100) }) })
	s.Run(8)
	want := []int{5, 3, 1, 4, 100, 0, 2}
	if len(got) != len(want) {
		t.Fatalf("%v, not %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, not %v", got, want)
		}
	}
	if s.Now() != 5 {
		t.Errorf("it is %v", s.Now())
	}
}

// poisson has something happen n times, so often per second, at random.
func poisson(s *Sim, n int, rate float64, do func()) {
	at := 0.0
	for range n {
		at += s.Rand.ExpFloat64() / rate
		s.At(time.Duration(at*1e9), do)
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s is %.5g, and should be %.5g within %.0f %%", what, got, want, within*100)
	}
}

const forever = time.Duration(math.MaxInt64)

// A station with random arrivals and equal services is M/D/1: the mean wait is ρ·D / 2(1-ρ).
func TestStationIsMD1(t *testing.T) {
	const service = time.Millisecond
	for _, load := range []float64{0.3, 0.6, 0.85} {
		s := NewSim(7)
		q := s.NewStation()
		var waited, served, inside time.Duration
		const n = 100_000
		poisson(s, n, load/service.Seconds(), func() {
			waited += q.Wait()
			came := s.Now()
			q.Serve(service, func() { served += service; inside += s.Now() - came })
		})
		s.Run(forever)
		near(t, "the mean wait", waited.Seconds()/n, load*service.Seconds()/2/(1-load), 0.05)
		if served != n*service || q.busy != served {
			t.Errorf("served %v, busy %v", served, q.busy)
		}
		// Little: as many inside on average as come per second, times how long each is.
		near(t, "the mean time inside", inside.Seconds()/n, waited.Seconds()/n+service.Seconds(), 1e-9)
		near(t, "the load", q.busy.Seconds()/s.Now().Seconds(), load, 0.02)
	}
}

// A host with one process and exponential work is M/M/c: Erlang's formula tells the mean wait.
func TestHostIsMMc(t *testing.T) {
	const (
		mean  = 100e-6 // far below the quantum, so that nobody is interrupted
		n     = 20_000
		seeds = 5
	)
	for _, cores := range []int{1, 2, 8} {
		for _, load := range []float64{0.5, 0.85} {
			var waited time.Duration
			for seed := range uint64(seeds) {
				s := NewSim(seed)
				p := s.NewHost("h", cores).NewProc("p", 0)
				began, ended := 0, 0
				var costs time.Duration
				poisson(s, n, load*float64(cores)/mean, func() {
					came := s.Now()
					cost := time.Duration(s.Rand.ExpFloat64() * mean * 1e9)
					costs += cost
					p.Timed(cost, func() { began++; waited += s.Now() - came }, func() { ended++ })
				})
				s.Run(forever)
				if began != n || ended != n || p.Used != costs || p.host.Busy() != costs {
					t.Errorf("%d began, %d ended; used %v and busy %v of %v", began, ended, p.Used, p.host.Busy(), costs)
				}
			}
			want := erlangC(cores, load*float64(cores)) * mean / (float64(cores) * (1 - load))
			near(t, "the mean wait", waited.Seconds()/n/seeds, want, 0.12)
		}
	}
}

// erlangC is the probability to have to wait at c servers with so much traffic.
func erlangC(c int, traffic float64) float64 {
	term, sum := 1.0, 0.0
	for k := range c {
		sum += term
		term *= traffic / float64(k+1)
	}
	last := term * float64(c) / (float64(c) - traffic)
	return last / (sum + last)
}

// Processes that always have work get equal shares; one with a single thread has no more than a core; a sleeper saves
// nothing up.
func TestHostIsFair(t *testing.T) {
	s := NewSim(1)
	h := s.NewHost("h", 2)
	a, b, one := h.NewProc("a", 0), h.NewProc("b", 0), h.NewProc("one", 1)
	for range 3000 {
		a.Do(time.Millisecond, nil)
		b.Do(100*time.Microsecond, nil)
		b.Do(1900*time.Microsecond, nil)
	}
	s.After(time.Second, func() {
		for range 3000 {
			one.Do(time.Millisecond, nil)
		}
	})
	s.Run(time.Second)
	near(t, "the share of a", a.Used.Seconds(), 1, 0.01)
	near(t, "the share of b", b.Used.Seconds(), 1, 0.01)
	s.Run(2 * time.Second)
	near(t, "the share of the one that came later", one.Used.Seconds(), 2.0/3, 0.02)
	s.Run(forever)
	if h.Busy() != 12*time.Second || a.Used+b.Used+one.Used != h.Busy() {
		t.Errorf("busy %v; used %v, %v, %v", h.Busy(), a.Used, b.Used, one.Used)
	}
}

func TestLongWorkLetsOthersPass(t *testing.T) {
	s := NewSim(1)
	p := s.NewHost("h", 1).NewProc("p", 0)
	var long, short time.Duration
	p.Do(time.Second, func() { long = s.Now() })
	p.Do(time.Millisecond, func() { short = s.Now() })
	s.Run(forever)
	if short != 3*quantum+time.Millisecond || long != time.Second+time.Millisecond {
		t.Errorf("short after %v, long after %v", short, long)
	}
}

func TestFifo(t *testing.T) {
	var f fifo[int]
	next, got := 0, 0
	for range 5 {
		for range 3000 {
			f.push(next)
			next++
		}
		for range 2900 {
			if v := f.pop(); v != got {
				t.Fatalf("%d, not %d", v, got)
			}
			got++
		}
	}
	for f.len() > 0 {
		if v := f.pop(); v != got {
			t.Fatalf("%d, not %d", v, got)
		}
		got++
	}
	if got != next {
		t.Errorf("%d of %d", got, next)
	}
}

// A goroutine that has waited for the disk is behind those that came meanwhile.
func TestProc_QueueAfterDisk(t *testing.T) {
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

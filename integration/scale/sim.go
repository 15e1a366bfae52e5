package scale

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Sim is a clock and what is due at which time. Of two things that are due at the same time the one that was asked for
// first happens first, so that a seed gives the same run on every machine.
type Sim struct {
	Rand *rand.Rand

	now   time.Duration
	heap  events
	asked uint64
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// NewSim returns a clock at zero.
func NewSim(seed uint64) *Sim {
	return &Sim{Rand: rand.New(rand.NewPCG(seed, 0x5a17))}
}

// Now is the time since the beginning.
func (s *Sim) Now() time.Duration { return s.now }

// After has something happen a while from now; what is asked for the past happens now.
func (s *Sim) After(d time.Duration, do func()) { s.At(s.now+d, do) }

// At has something happen at a time.
func (s *Sim) At(at time.Duration, do func()) {
	s.asked++
	heap.Push(&s.heap, event{max(at, s.now), s.asked, do})
}

// events implement heap.Interface.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)   { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	n := len(*e) - 1
	last := (*e)[n]
	(*e)[n], *e = event{}, (*e)[:n]
	return last
}

// Run lets everything happen until nothing is due any more, or the time has come.
func (s *Sim) Run(until time.Duration) {
	for len(s.heap) > 0 && s.heap[0].at <= until {
		e := heap.Pop(&s.heap).(event)
		s.now = e.at
		e.do()
	}
}

// Between draws a duration.
func (s *Sim) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(s.Rand.Int64N(int64(high-low)+1))
}

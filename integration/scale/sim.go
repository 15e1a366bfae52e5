package scale

import (
	"math/rand/v2"
	"time"
)

// Sim is a clock and what is due at which time. Of two things that are due at the same time the one that was asked for first happens
// first, so that a seed gives the same run on every machine.
type Sim struct {
	Rand *rand.Rand

	now   time.Duration
	heap  []event
	asked uint64
	steps uint64
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

// Steps counts what has happened.
func (s *Sim) Steps() uint64 { return s.steps }

// After has something happen a while from now; what is asked for the past happens now.
func (s *Sim) After(d time.Duration, do func()) { s.At(s.now+d, do) }

// At has something happen at a time.
func (s *Sim) At(at time.Duration, do func()) {
	s.asked++
	s.heap = append(s.heap, event{max(at, s.now), s.asked, do})
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 4
		if !s.heap[i].before(&s.heap[up]) {
			break
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// Run lets everything happen until nothing is due any more, or the time has come.
func (s *Sim) Run(until time.Duration) {
	for len(s.heap) > 0 && s.heap[0].at <= until {
		e := s.pop()
		s.now = e.at
		s.steps++
		e.do()
	}
}

func (s *Sim) pop() event {
	h := s.heap
	top, n := h[0], len(h)-1
	h[0], h[n] = h[n], event{}
	h = h[:n]
	s.heap = h
	for i := 0; ; {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < n; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// Between draws a duration.
func (s *Sim) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(s.Rand.Int64N(int64(high-low)+1))
}

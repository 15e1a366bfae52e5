package main

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// piece is work that is always the same, by which it is seen how fast the processors are: those of a virtual machine share their cores with
// others', whose work makes every step take longer without being told as time that was stolen.
type piece struct{ mixed, sorted [2048]uint32 }

func newPiece() *piece {
	p := &piece{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range p.mixed {
		p.mixed[i] = r.Uint32()
	}
	return p
}

// take does the work, some 0.1 ms of it, and returns what CPU time it took.
func (p *piece) take() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadCPU()
	p.sorted = p.mixed
	slices.Sort(p.sorted[:])
	return threadCPU() - began
}

// pace is what the piece of work took between two times, in the middle.
func (m *meter) pace(from, to time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	for _, l := range m.looks {
		if !l.at.Before(from) && !l.at.After(to.Add(meterEvery)) {
			all = append(all, l.pace)
		}
	}
	if len(all) == 0 {
		return m.looks[len(m.looks)-1].pace
	}
	return quantile(all, 0.5)
}

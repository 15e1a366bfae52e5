package scale

import "time"

// quantum is how long a process keeps a core while others wait for it.
const quantum = 4 * time.Millisecond

// Host is a machine whose cores its processes share as Linux shares them: whoever has had least goes first.
type Host struct {
	Name string

	sim   *Sim
	idle  int
	cores int
	procs []*Proc
	least time.Duration // what the process has had that was let in last
	busy  time.Duration
}

// NewHost returns a machine without processes.
func (s *Sim) NewHost(name string, cores int) *Host {
	return &Host{Name: name, sim: s, idle: cores, cores: cores}
}

// Busy is the CPU time that was used.
func (h *Host) Busy() time.Duration { return h.busy }

// dispatch gives idle cores to the processes that have had least.
func (h *Host) dispatch() {
	for h.idle > 0 {
		var next *Proc
		for _, p := range h.procs {
			if p.running < p.threads && p.waiting() > 0 && (next == nil || p.had < next.had) {
				next = p
			}
		}
		if next == nil {
			return
		}
		h.least = max(h.least, next.had)
		h.run(next)
	}
}

// run has a process work until its quantum ends.
func (h *Host) run(p *Proc) {
	w := p.pick()
	if !w.begun && w.start != nil {
		w.start()
	}
	w.begun = true
	slice := min(w.left, quantum)
	for len(w.marks) > 0 && w.marks[0].left >= w.left-slice {
		h.sim.After(w.left-w.marks[0].left, w.marks[0].do)
		w.marks = w.marks[1:]
	}
	w.left -= slice
	w.ran += slice
	h.idle--
	p.running++
	p.had += slice
	h.sim.After(slice, func() {
		h.idle++
		p.running--
		p.Used += slice
		h.busy += slice
		switch {
		case w.left <= 0:
		case w.ran < goQuantum:
			p.paused.push(w)
		default:
			w.ran = 0
			p.long.push(w)
		}
		h.dispatch()
		if w.left <= 0 && w.done != nil {
			w.done()
		}
	})
}

package lifecycle

import "sync/atomic"

// Progress is how far a service is.
type Progress struct {
	Serving atomic.Bool // peers may hand over requests and publications
	Opened  atomic.Bool // so may minions: the edges are open
	Settled atomic.Bool // everything is open, and a process before this one has ended
	Handed  atomic.Bool // another process serves instead

	step atomic.Value // string: what opening waits for
}

// WaitFor notes what opening waits for.
func (p *Progress) WaitFor(step string) { p.step.Store(step) }

// WaitsFor returns what still has to happen before minions are served; empty when they are.
func (p *Progress) WaitsFor() string {
	if p.Opened.Load() {
		return ""
	}
	step, _ := p.step.Load().(string)
	return step
}

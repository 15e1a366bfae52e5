package catchup

import (
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// Bytes is the unit of parts that are measured by size.
const Bytes = "bytes"

// State is where a part stands.
type State string

// The states.
const (
	StateWaiting State = "waiting" // Run has not been called yet
	StateSyncing State = "syncing"
	StateDone    State = "done"
	StateGivenUp State = "given_up"
	StateOff     State = "off" // it is not replicated
)

// Status is how far a part is.
type Status struct {
	Name string
	Report
	State State
	Since time.Time // it began
	Err   string    // of the last try, or why it was given up or is off
}

// Open says whether a part is still to be waited for.
func (s Status) Open() bool { return s.State == StateWaiting || s.State == StateSyncing }

// part is a Part on its way.
type part struct {
	Part

	mu    sync.Mutex
	last  Report
	state State
	err   string
	since time.Time
	moved time.Time // when there was progress last
}

func (p *part) startSync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.since, p.moved = StateSyncing, time.Now(), time.Now()
}

// noteReport takes a report; one that says only what was known already does not count as progress.
func (p *part) noteReport(r Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Done != p.last.Done || r.Total != p.last.Total || r.Note != p.last.Note && !r.Starved {
		p.moved = time.Now()
		p.err = ""
	}
	p.last = r
}

func (p *part) noteSource(from node.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.From = from
}

func (p *part) noteError(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = string(p.last.From) + ": " + err.Error()
}

func (p *part) endSync(s State, err string) Status {
	p.mu.Lock()
	p.state, p.err = s, err
	p.mu.Unlock()
	return p.currentStatus()
}

func (p *part) isStarved() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Starved
}

// idleTime is how long ago the last progress was, and what is known of why there has been none since.
func (p *part) idleTime() (time.Duration, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := p.err
	if reason == "" {
		reason = p.last.Note
	}
	return time.Since(p.moved), reason
}

func (p *part) currentStatus() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{Name: p.Name, Report: p.last, State: p.state, Since: p.since, Err: p.err}
	if st.State == "" {
		st.State = StateWaiting
	}
	return st
}

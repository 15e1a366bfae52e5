package late

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"
)

// Process names one process of a minion.
type Process uint64

// Unnamed is a process that shows no token. Each sign-in of such a one counts as a new process.
const Unnamed Process = 0

// ProcessOf names the process that shows token, which is a secret of the minion's.
func ProcessOf(token []byte) Process {
	if len(token) == 0 {
		return Unnamed
	}
	sum := sha256.Sum256(token)
	return Process(binary.BigEndian.Uint64(sum[:]) | 1)
}

// Start is the first sign-in of a process.
type Start struct {
	ID      string
	Process Process
	At      time.Time
}

const (
	// perMinion is how many processes of one minion are remembered: salt-call is a process of its own each time.
	perMinion = 8
	// maxMinions bounds the table. When it is full all are forgotten, and count as new when they sign in again.
	maxMinions = 1 << 17
)

// Processes knows which processes have signed in, anywhere in the cluster. It may be used by several goroutines.
type Processes struct {
	age time.Duration
	now func() time.Time

	mu     sync.Mutex
	known  map[string][]Start // by minion, the oldest first
	recent []Start            // no older than age, in the order in which they were heard
}

// NewProcesses returns an empty table that tells about starts of the last age.
func NewProcesses(age time.Duration, now func() time.Time) *Processes {
	return &Processes{age: age, now: now, known: map[string][]Start{}}
}

// SignedIn notes a sign-in. It reports whether the process was not known before, which the other nodes want to hear
// then.
func (p *Processes) SignedIn(s Start) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Process != Unnamed {
		had := p.known[s.ID]
		i := slices.IndexFunc(had, func(h Start) bool { return h.Process == s.Process })
		if i >= 0 && !s.At.Before(had[i].At) {
			return false
		}
		if i >= 0 { // another node has seen it earlier
			had[i].At = s.At
			p.recent = slices.DeleteFunc(p.recent, func(h Start) bool { return h.ID == s.ID && h.Process == s.Process })
		} else {
			p.rememberStart(s, had)
		}
	}
	oldest := p.now().Add(-p.age)
	drop := 0
	for drop < len(p.recent) && p.recent[drop].At.Before(oldest) {
		drop++
	}
	p.recent = slices.Delete(p.recent, 0, drop)
	if !s.At.Before(oldest) {
		p.recent = append(p.recent, s)
	}
	return true
}

// rememberStart adds a process to had, those of the same minion. The caller holds mu.
func (p *Processes) rememberStart(s Start, had []Start) {
	if len(p.known) >= maxMinions && had == nil {
		clear(p.known)
	}
	if len(had) >= perMinion {
		had = slices.Delete(had, 0, len(had)-perMinion+1)
	}
	p.known[s.ID] = append(had, s)
}

// Known reports whether a process has signed in before.
func (p *Processes) Known(id string, process Process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return process != Unnamed && slices.ContainsFunc(p.known[id], func(h Start) bool { return h.Process == process })
}

// Since lists the minions of which a process has started at or after t, sorted. When they are more than a target can
// leave out, it lists just enough to see that.
func (p *Processes) Since(t time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, size := map[string]bool{}, 0
	for _, s := range p.recent {
		if !s.At.Before(t) && !seen[s.ID] {
			seen[s.ID] = true
			if size += len(s.ID) + 1; size > 2*maxLeftOut {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// All lists every start that is known, and those of unnamed processes of late.
func (p *Processes) All() []Start {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Start, 0, len(p.known))
	for _, starts := range p.known {
		out = append(out, starts...)
	}
	for _, s := range p.recent {
		if s.Process == Unnamed {
			out = append(out, s)
		}
	}
	return out
}

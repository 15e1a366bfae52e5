package late

import (
	"slices"
	"sync"
	"time"
)

// Publication is one that may be given again.
type Publication struct {
	JID    string
	Plain  []byte   // as the master made it; not to be changed
	Topics []string // for subscribers that filter; nil: "broadcast"
	At     time.Time
	Came   time.Time // when it came to this node; zero: when it was published
	Origin string    // the node whose master published it; empty: not known

	stops Stops
}

// Limits bound a Memory.
type Limits struct {
	Age   time.Duration
	Count int // well below what a minion remembers
	Bytes int
}

// Memory holds the last publications. It may be used by several goroutines.
type Memory struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	all     []Publication // the oldest first; without Plain: one that is too large
	bytes   int
	dropped uint64 // that were too many or too large
}

// NewMemory returns an empty memory.
func NewMemory(limits Limits, now func() time.Time) *Memory {
	return &Memory{limits: limits, now: now}
}

// Add keeps p. Of one that is there already, by its id and target, the earlier time and the topics of both count. An id
// alone does not tell: 3008 publishes all parts of a batch under one (salt/cli/batch.py).
func (m *Memory) Add(p Publication) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Came.IsZero() {
		p.Came = p.At
	}
	tooLarge := len(p.Plain) > m.limits.Bytes
	if tooLarge { // not for the price of all others; it counts among what a minion remembers
		p.Plain = nil
	}
	for i := range m.all {
		if had := &m.all[i]; had.JID == p.JID && hasSameTarget(had.Plain, p.Plain) {
			if p.At.Before(had.At) {
				had.At = p.At // the order is right to a moment
			}
			if had.Topics != nil {
				had.Topics = addTopics(had.Topics, p.Topics)
			}
			return
		}
	}
	if tooLarge {
		m.dropped++
	}
	p.stops = StopsOf(p.Plain)
	after, _ := slices.BinarySearchFunc(m.all, p.At, func(had Publication, at time.Time) int {
		if had.At.After(at) {
			return 1
		}
		return -1
	})
	m.all = slices.Insert(m.all, after, p)
	m.bytes += len(p.Plain)
	m.dropOld()
}

// addTopics returns the topics of both, without changing had, which others may read.
func addTopics(had, more []string) []string {
	out := slices.Clip(had)
	for _, topic := range more {
		if !slices.Contains(out, topic) {
			out = append(out, topic)
		}
	}
	return out
}

// dropOld forgets what is too old, and the first of what is too much. The caller holds mu.
func (m *Memory) dropOld() {
	oldest := m.now().Add(-m.limits.Age)
	drop := 0
	for ; drop < len(m.all); drop++ {
		old := m.all[drop].At.Before(oldest)
		if !old && len(m.all)-drop <= m.limits.Count && m.bytes <= m.limits.Bytes {
			break
		}
		if !old && m.all[drop].Plain != nil {
			m.dropped++
		}
		m.bytes -= len(m.all[drop].Plain)
	}
	m.all = slices.Delete(m.all, 0, drop)
}

// Since returns what was published at or after t, the first one first.
func (m *Memory) Since(t time.Time) []Publication {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropOld()
	var out []Publication
	for _, p := range m.all {
		if !p.At.Before(t) && p.Plain != nil {
			out = append(out, p)
		}
	}
	return out
}

// Clear forgets everything.
func (m *Memory) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.bytes = nil, 0
}

// Bytes is how much is kept.
func (m *Memory) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropOld()
	return m.bytes
}

// Dropped is how many publications were dropped because there were too many, or because they were too large.
func (m *Memory) Dropped() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped
}

package history

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Recorder collects a History from many goroutines.
type Recorder struct {
	mu sync.Mutex
	h  History
}

// NewRecorder starts a history.
func NewRecorder(seed uint64, nodes ...string) *Recorder {
	return &Recorder{h: History{Seed: seed, Nodes: nodes, Start: time.Now()}}
}

func (r *Recorder) with(f func(*History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.h)
}

// Publication records a finished publication.
func (r *Recorder) Publication(p Publication) {
	r.with(func(h *History) { h.Publications = append(h.Publications, p) })
}

// Run records that a minion ran something now.
func (r *Recorder) Run(x Run) { r.with(func(h *History) { h.Runs = append(h.Runs, x) }) }

// Return records the end of a minion's attempts to return something.
func (r *Recorder) Return(x Return) { r.with(func(h *History) { h.Returns = append(h.Returns, x) }) }

// Cached records what a job cache holds.
func (r *Recorder) Cached(all ...Cached) {
	r.with(func(h *History) { h.Cache = append(h.Cache, all...) })
}

// Presence records a time of subscription that has ended.
func (r *Recorder) Presence(p Presence) {
	r.with(func(h *History) { h.Presences = append(h.Presences, p) })
}

// KeyOp records a decision about a key.
func (r *Recorder) KeyOp(k KeyOp) { r.with(func(h *History) { h.KeyOps = append(h.KeyOps, k) }) }

// Probe records an attempt to use a key.
func (r *Recorder) Probe(p Probe) { r.with(func(h *History) { h.Probes = append(h.Probes, p) }) }

// Sent records an event of a minion.
func (r *Recorder) Sent(s Sent) { r.with(func(h *History) { h.Sents = append(h.Sents, s) }) }

// Heard records an event on a bus.
func (r *Recorder) Heard(x Heard) { r.with(func(h *History) { h.Heards = append(h.Heards, x) }) }

// View records what a node says at the end.
func (r *Recorder) View(v View) { r.with(func(h *History) { h.Views = append(h.Views, v) }) }

// Note records a line of text.
func (r *Recorder) Note(format string, args ...any) {
	r.with(func(h *History) { h.Notes = append(h.Notes, Note{At: time.Now(), Text: fmt.Sprintf(format, args...)}) })
}

// Fault records that a fault begins; the function returned records its end.
func (r *Recorder) Fault(f Fault) (end func()) {
	var i int
	f.Start = time.Now()
	r.with(func(h *History) { i = len(h.Faults); h.Faults = append(h.Faults, f) })
	return func() { r.with(func(h *History) { h.Faults[i].End = time.Now() }) }
}

// History returns a copy of what has been recorded until now.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.h
	h.Publications = slices.Clone(h.Publications)
	h.Runs = slices.Clone(h.Runs)
	h.Returns = slices.Clone(h.Returns)
	h.Cache = slices.Clone(h.Cache)
	h.Presences = slices.Clone(h.Presences)
	h.KeyOps = slices.Clone(h.KeyOps)
	h.Probes = slices.Clone(h.Probes)
	h.Sents = slices.Clone(h.Sents)
	h.Heards = slices.Clone(h.Heards)
	h.Faults = slices.Clone(h.Faults)
	h.Notes = slices.Clone(h.Notes)
	h.Views = slices.Clone(h.Views)
	return &h
}

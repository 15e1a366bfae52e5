package trace

import (
	"crypto/rand"
	"sync"
	"time"
)

// maxSteps is what a request has at most: one that is tried on node after node has no end of them. Later ones are part
// of the last.
const maxSteps = 24

// span is one step, or the whole.
type span struct {
	id         [8]byte
	name       string
	kind       int
	start, end time.Time
	attrs      []attribute
	failed     bool
}

type attribute struct {
	name string
	text string
	num  int64 // when text is empty
}

// Kinds of spans in OTLP.
const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
)

// Request is the trace of one request. Its methods may be called from any goroutine, and after its end, when they do
// nothing.
type Request struct {
	tracer *Tracer
	parent Parent // its span may be zero: this is where the trace begins

	mu    sync.Mutex
	whole span
	steps []span
	ended bool
}

// Begin returns the trace of a request that came at a time; nil unless it is one of those that are traced. A request
// that another node has begun to trace is also traced here.
func (t *Tracer) Begin(at time.Time, from Parent) *Request {
	if t == nil || !from.sampled && !t.isSampled() {
		return nil
	}
	r := &Request{tracer: t, parent: from}
	if !from.sampled {
		_, _ = rand.Read(r.parent.trace[:]) // never fails (crypto/rand)
	}
	r.whole = span{id: newID(), name: "request", kind: kindServer, start: at}
	r.steps = append(make([]span, 0, 8), span{id: newID(), name: "accept", kind: kindInternal, start: at})
	return r
}

func newID() (id [8]byte) {
	_, _ = rand.Read(id[:])
	return id
}

// Step ends the step before and begins another one.
func (r *Request) Step(name string) { r.startStep(name, kindInternal, attribute{}) }

// Carry is the step in which a node carries the request out: its name, or empty for the master of this one.
func (r *Request) Carry(name, node string) {
	r.startStep(name, kindClient, attribute{name: "saltcluster.node", text: node})
}

func (r *Request) startStep(name string, kind int, a attribute) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || len(r.steps) == maxSteps {
		return
	}
	r.steps[len(r.steps)-1].end = now
	s := span{id: newID(), name: name, kind: kind, start: now}
	if a.text != "" {
		s.attrs = []attribute{a}
	}
	r.steps = append(r.steps, s)
}

// Failed notes that the step which is under way did not do what it should have done.
func (r *Request) Failed() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.steps[len(r.steps)-1].failed = true
	}
}

// Command notes what was asked, and by whom, which is told only where Config.IDs says so.
func (r *Request) Command(cmd, minion string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.whole.name = cmd
	r.whole.attrs = append(r.whole.attrs, attribute{name: "salt.command", text: cmd})
	if r.tracer.cfg.IDs && minion != "" {
		r.whole.attrs = append(r.whole.attrs, attribute{name: "salt.minion", text: minion})
	}
}

// End is when the answer has left, with this many bytes, or, with -1, when there will be none.
func (r *Request) End(size int) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	r.whole.end, r.steps[len(r.steps)-1].end = now, now
	if r.whole.failed = size < 0; !r.whole.failed {
		r.whole.attrs = append(r.whole.attrs, attribute{name: "saltcluster.answer_bytes", num: int64(size)})
	}
	r.tracer.enqueueRequest(r)
}

// traceparent is the traceparent for what is done elsewhere in the present step.
func (r *Request) traceparent() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Parent{trace: r.parent.trace, span: r.steps[len(r.steps)-1].id}.traceparent()
}

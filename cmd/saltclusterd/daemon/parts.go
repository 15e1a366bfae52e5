package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// part is one that is opened and closed.
type part interface {
	closer
	Open(context.Context) error
}

// phase says when a process that takes over from another one opens a part. One that does not opens all in the order of
// their list, but for the edges, which come last.
type phase int

const (
	// shared are the parts that two processes can have open. They are opened before the old process hands over.
	shared phase = iota
	// outgoing and incoming have the connections of the old process: what publications go out through is open before they
	// come in.
	outgoing
	incoming
	// exclusive are the parts that only one process can have open, because of what they keep on disk: an old process
	// closes them before the new one opens them. Until then, callers that need them have to wait, or do without: a
	// return goes to the journal of another node, or is not acknowledged.
	exclusive
)

// listed is a part of a service.
type listed struct {
	name string
	part
	phase phase
}

// parts lists all parts. Whoever opened them and when, Close ends them backwards: what hands something to another part
// stands after it, and what everything else needs comes first.
func (s *service) parts() []listed {
	return []listed{
		{"shared file system", s.share, exclusive},
		{"the master's files", masterPart{s}, exclusive}, // before anything is written
		{"key directory", s.dir, exclusive},
		{"missed jobs", s.missed, exclusive}, // before a job is seen
		{"requests to the master", s.req, shared},
		{"event bus", s.bus, shared},
		{"mirror of events", s.mirror, exclusive},
		{"returns", s.native.Returns, exclusive},
		{"events of minions", s.native.Events, shared},
		{"sign-in", s.signin, shared},
		{"fan-out", s.hub, outgoing},
		{"minion data", s.data, exclusive},
		{"mines", s.mines, exclusive},
		{"tokens", s.tokens, exclusive},
		{"roots", s.roots, exclusive},
		{"jobs", s.cache, exclusive},
		{"publications of the master", s.sub, incoming},
		{"duties", dutiesPart{s}, shared}, // they end before the subscription: its last message may wait for a sign-in
		{"traces", tracePart{s}, shared},
		{"files", opened{s.native.Files}, shared},
		{"requests of minions", opened{s.proxy}, shared},
		{"publish port", s.pub, outgoing},
		{"request port", s.reqs, incoming},
	}
}

// isEdge says whether minions connect to a part.
func (s *service) isEdge(p listed) bool { return p.part == part(s.pub) || p.part == part(s.reqs) }

// openParts opens those parts that are chosen, in the order of their list.
func (s *service) openParts(ctx context.Context, list []listed, chosen func(listed) bool) error {
	for _, p := range list {
		if !chosen(p) {
			continue
		}
		if err := p.Open(ctx); err != nil {
			return fmt.Errorf("open %s: %w", p.name, err)
		}
		s.open.add(p.part)
	}
	return nil
}

// openPhase opens the parts of a phase.
func (s *service) openPhase(ctx context.Context, of phase) error {
	return s.openParts(ctx, s.parts(), func(p listed) bool { return p.phase == of })
}

// closeParts closes those parts that are open, backwards.
func (s *service) closeParts(list []listed) error {
	var errs []error
	for _, p := range slices.Backward(list) {
		errs = append(errs, s.closePart(p))
	}
	return errors.Join(errs...)
}

// closePart closes a part if it is open.
func (s *service) closePart(p listed) error {
	if !s.open.remove(p.part) {
		return nil
	}
	return s.share.ClosePart(p.part)
}

// openSet are the parts that are open.
type openSet struct {
	mu  sync.Mutex
	set map[part]bool
}

func (o *openSet) add(p part) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = map[part]bool{}
	}
	o.set[p] = true
}

func (o *openSet) remove(p part) (was bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was = o.set[p]
	delete(o.set, p)
	return was
}

// masterPart is what has to be known of the master's files, and to be there, before anything is written.
type masterPart struct{ s *service }

// Open implements part.
func (p masterPart) Open(ctx context.Context) error {
	p.s.wg.Go(p.s.share.FindMisplaced)
	p.s.makeCache()
	p.s.umask.Ask(ctx)
	return nil
}

// Close implements part.
func (masterPart) Close() error { return nil }

// opened is a part that works from the moment it is made.
type opened struct{ closer }

// Open implements part.
func (opened) Open(context.Context) error { return nil }

// dutiesPart is everything that runs until the service's context ends.
type dutiesPart struct{ s *service }

// Open implements part.
func (dutiesPart) Open(context.Context) error { return nil }

// Close implements part.
func (p dutiesPart) Close() error {
	p.s.cancel()
	return nil
}

// tracePart opens and closes the tracer, also when there is none.
type tracePart struct{ s *service }

// Open implements part.
func (p tracePart) Open(context.Context) error {
	p.s.trace.Open()
	return nil
}

// Close implements part.
func (p tracePart) Close() error { return p.s.trace.Close() }

package daemon

import (
	"context"
	"slices"
)

// part is one that is opened and closed.
type part interface {
	closer
	Open(context.Context) error
}

// shared are the parts that two processes can have open.
func (s *service) shared() []part { return []part{s.req, s.bus, s.fired, s.signin} }

// connected are those that have the connections of the old process.
func (s *service) connected() []part { return []part{s.hub, s.pub, s.sub, s.reqs} }

// exclusive are the parts that only one process can have open, for what they keep on disk: an old process closes them
// before the new one opens them, in this order. Until then who needs them has to wait, or do without: a return goes to the
// salt-master as if there were no journal.
func (s *service) exclusive() []part {
	parts := []part{s.returns, s.dir, s.data, s.mines, s.tokens, treesPart{s}, s.cache, s.mirror}
	if s.share != nil {
		parts = append(parts, s.share)
	}
	return parts
}

// closeBefore has Close come to an exclusive part when it would have in a process that opened all of them itself: before the bus, or what returns have
// just handed to that would be fired again by the next process, but for the key directory and the share, which everything else needs.
func (s *service) closeBefore(p part) {
	s.partsMu.Lock()
	defer s.partsMu.Unlock()
	at := 0
	if p != part(s.dir) && p != part(s.share) {
		at = slices.Index(s.open, closer(s.bus)) + 1
	}
	s.open = slices.Insert(s.open, at, closer(p))
}

package edge

import (
	"time"

	"saltclusterd/sidecar/zmtp"
)

// Newcomer is a subscriber that has begun to listen. It may have been between two connections, and have missed something. The zero
// value is none that is served here.
type Newcomer struct{ s *sub }

// Gone tells whether its connection has ended.
func (n Newcomer) Gone() bool { return n.s != nil && n.s.reason() != reasonNone }

// knownAfter is how long ago a connection that another process hands over began at least, for its subscriber to be no newcomer.
const knownAfter = 5 * time.Second

// arrive notes that a connection has subscribed to its first topic. Wants shard.mu.
func (s *sub) arrive() {
	if s.known {
		return
	}
	s.known = true
	e := s.edge
	e.newMu.Lock()
	e.newcomers = append(e.newcomers, Newcomer{s})
	e.newMu.Unlock()
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

// Arrived gets a value when there are newcomers.
func (e *PubEdge) Arrived() <-chan struct{} { return e.arrived }

// Newcomers returns those which have come since the last call. There are never more than connections.
func (e *PubEdge) Newcomers() []Newcomer {
	e.newMu.Lock()
	defer e.newMu.Unlock()
	all := e.newcomers
	e.newcomers = nil
	return all
}

// Everybody returns all subscribers as if they had just come.
func (e *PubEdge) Everybody() []Newcomer {
	var all []Newcomer
	for _, s := range e.members() {
		all = append(all, Newcomer{s})
	}
	return all
}

// Give hands publications to some subscribers alone, after what was published before and before what is published next:
// Publish must not be called meanwhile. Those which filter get what has one of their topics. It returns how many publications
// were handed over, those to different subscribers counted apart.
func (e *PubEdge) Give(to []Newcomer, pubs []Publication) (given int) {
	copies := make([]copied, len(pubs))
	for i, p := range pubs {
		copies[i] = newCopied(p)
	}
	current, _ := e.current()
	for _, n := range to {
		given += n.s.give(copies, current)
	}
	return given
}

// copied is a publication that is written to some subscribers only, encoded once for all of them.
type copied struct {
	cur, prev *chunk
	topics    []string
	body      Publication
}

func newCopied(p Publication) copied {
	c := copied{cur: fixed(zmtp.AppendMessage(nil, p.Body)), topics: p.Topics, body: p}
	c.prev = c.cur
	if p.Prev != nil {
		c.prev = fixed(zmtp.AppendMessage(nil, p.Prev))
	}
	if len(c.topics) == 0 {
		c.topics = toBroadcast
	}
	return c
}

// give queues copies for this subscriber alone.
func (s *sub) give(copies []copied, current *feed) (given int) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.shard.match() // what was published before comes before it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.frozen {
		return 0
	}
	s.edge.mu.Lock()
	unfiltered := s.q.open() != nil
	if unfiltered {
		s.q.leave(s.feed)
	}
	for _, c := range copies {
		if one, ok := c.seg(s, unfiltered, s.feed == current); ok {
			s.q.segs = append(s.q.segs, one)
			given++
		}
	}
	if unfiltered {
		s.q.follow(s.feed)
	}
	s.edge.mu.Unlock()
	s.flush()
	return given
}

// seg is the copy as s gets it; false: it is not for s, which filters.
func (c copied) seg(s *sub, unfiltered, current bool) (seg, bool) {
	at, body := c.cur, c.body.Body
	if !current && c.body.Prev != nil {
		at, body = c.prev, c.body.Prev
	}
	if unfiltered {
		return whole(at), true
	}
	for _, topic := range c.topics {
		if s.topics.covers(topic) {
			return whole(fixed(zmtp.AppendMessage(nil, []byte(topic), body))), true
		}
	}
	return seg{}, false
}

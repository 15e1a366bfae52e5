package edge

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/signal"
)

// Newcomer is a subscriber that has begun to listen. It may have been between two connections, and have missed
// something. The zero value is none that is served here.
type Newcomer struct{ s *sub }

// Gone tells whether its connection has ended.
func (n Newcomer) Gone() bool { return n.s != nil && n.s.Reason() != netconn.ReasonNone }

// Network is where it has come from (netconn.Network).
func (n Newcomer) Network() netip.Addr {
	if n.s == nil {
		return netip.Addr{}
	}
	return netconn.Network(n.s.Remote().Addr())
}

// knownAfter is the age above which the subscriber of a connection that another process hands over does not count as a
// newcomer.
const knownAfter = 5 * time.Second

// arrive notes that a connection has subscribed to its first topic. Wants shard.mu.
func (s *sub) arrive() {
	if s.known {
		return
	}
	s.known = true
	s.edge.newcomers.add(s, false)
}

// newcomers are the subscribers to be returned by Newcomers.
type newcomers struct {
	mu      sync.Mutex // an innermost lock
	come    []Newcomer
	moved   []Newcomer
	arrived chan struct{} // holds one
}

// add notes a subscriber that has come, or moved to another generation.
func (n *newcomers) add(s *sub, moved bool) {
	n.mu.Lock()
	if moved {
		n.moved = append(n.moved, Newcomer{s})
	} else {
		n.come = append(n.come, Newcomer{s})
	}
	n.mu.Unlock()
	signal.Send(n.arrived)
}

// Arrived gets a value when there are some whom Newcomers returns.
func (e *PubEdge) Arrived() <-chan struct{} { return e.newcomers.arrived }

// Newcomers returns those which have come since the last call, and those which were there and moved to another
// generation, each once. A connection comes once.
func (e *PubEdge) Newcomers() (come, moved []Newcomer) {
	n := &e.newcomers
	n.mu.Lock()
	come, moved = n.come, n.moved
	n.come, n.moved = nil, nil
	n.mu.Unlock()
	seen := make(map[Newcomer]bool, len(moved))
	moved = slices.DeleteFunc(moved, func(n Newcomer) bool { // two generations may have come since
		was := seen[n]
		seen[n] = true
		return was
	})
	return come, moved
}

// AllSubscribers returns all subscribers as if they had just come.
func (e *PubEdge) AllSubscribers() []Newcomer {
	var all []Newcomer
	for _, s := range e.members() {
		all = append(all, Newcomer{s})
	}
	return all
}

// Give hands publications to some subscribers alone, after what was published before and before what is published next:
// Publish must not be called meanwhile. Those which filter get what has one of their topics. It returns how many
// publications were handed over, those to different subscribers counted apart.
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
	cur, prev regions
	topics    []string
}

func newCopied(p Publication) copied {
	alone := func(body []byte) (r regions) {
		for t := range r {
			c := encodings[t].message(body)
			r[t] = region{chunk: c, end: uint32(c.used)}
		}
		return r
	}
	c := copied{cur: alone(p.Body), topics: p.Topics}
	c.prev = c.cur
	if p.Prev != nil {
		c.prev = alone(p.Prev)
	}
	if len(c.topics) == 0 {
		c.topics = toBroadcast
	}
	return c
}

// give queues copies for this subscriber alone.
func (s *sub) give(copies []copied, current *generation) (given int) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.lockMatched() // what was published before comes before it
	defer s.Mu.Unlock()
	if s.Closed() || s.Frozen() {
		s.edge.mu.Unlock()
		return 0
	}
	unfiltered := s.q.open() != nil
	if unfiltered {
		s.q.leave(s.feed)
	}
	for _, c := range copies {
		if s.queue(c, unfiltered, s.feed.gen == current.number) {
			given++
		}
	}
	if unfiltered {
		s.q.follow(s.feed)
	}
	s.edge.mu.Unlock()
	if given > 0 && s.owing == 0 {
		s.owing = netconn.Clock()
	}
	s.flush()
	return given
}

// queue appends a copy to the queue; false: it is not for s, which filters. Wants Mu.
func (s *sub) queue(c copied, unfiltered, current bool) bool {
	at := c.cur[s.wire.transport()]
	if !current {
		at = c.prev[s.wire.transport()]
	}
	for _, topic := range c.topics {
		switch {
		case !s.topics.covers(topic) && (topic != broadcast || s.encoding().topics):
		case unfiltered:
			s.q.segs = append(s.q.segs, whole(at.chunk))
			return true
		default:
			s.enqueue(fixed(topicFrame(topic)), at)
			return true
		}
	}
	return false
}

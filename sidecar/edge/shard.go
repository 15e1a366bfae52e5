package edge

import (
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/signal"
)

// shard is a share of the subscribers and the worker that serves them.
type shard struct {
	edge *PubEdge
	wake chan struct{} // holds one: something was published
	// How far the worker has walked: sequence and position. Publish waits
	// while it is too far behind.
	doneSeq atomic.Uint64
	donePos atomic.Int64

	mu      sync.Mutex
	members []*sub // those which have shaken hands
	changed bool   // members differ from the worker's copy
	index   index  // filtering subscribers by topic
	rec     *record

	walk []*sub // the worker's copy of members
}

func newShard(e *PubEdge) *shard {
	return &shard{edge: e, wake: make(chan struct{}, 1), rec: e.lastRecord, index: newIndex()}
}

// notifyWorker wakes the worker, now or as soon as it has finished its round.
func (h *shard) notifyWorker() { signal.Send(h.wake) }

// work walks the subscribers whenever something was published, and looks at
// their heartbeats in between.
func (h *shard) work() error {
	timer := time.NewTimer(backoff.Align(h.edge.beatInterval()))
	defer timer.Stop()
	for {
		select {
		case <-h.edge.ctx.Done():
			return nil
		case <-h.wake:
			h.round()
		case <-timer.C:
			timer.Reset(backoff.Align(h.edge.beatInterval()))
			h.checkBeats(netconn.Clock())
		}
	}
}

// round writes to every subscriber what it has not got yet.
func (h *shard) round() {
	seq, pos := h.edge.progress()
	h.mu.Lock()
	h.match()
	h.copyMembers()
	h.mu.Unlock()
	for _, s := range h.walk {
		s.Mu.Lock()
		switch {
		case s.blocked && s.behind():
			s.Cut(netconn.ReasonSlow)
		case s.held && s.behind(): // more than may wait: now, before it is too much
			s.unhold(netconn.Clock())
		default:
			s.flush()
		}
		s.Mu.Unlock()
	}
	h.doneSeq.Store(seq)
	h.donePos.Store(pos)
	h.edge.walked()
}

// copyMembers brings the worker's copy up to date. Wants mu.
func (h *shard) copyMembers() {
	if h.changed {
		clear(h.walk)
		h.walk = append(h.walk[:0], h.members...)
		h.changed = false
	}
}

// join makes a subscriber that has shaken hands a member of its shard.
func (s *sub) join() {
	h := s.shard
	h.mu.Lock()
	defer h.mu.Unlock()
	s.beat.start(netconn.Clock(), h.edge.cfg.Heartbeat)
	s.Mu.Lock()
	h.edge.mu.Lock()
	s.feed, s.lastSeen = h.edge.cur.feed(s.wire.transport()), h.edge.seq
	if !s.feed.enc.topics {
		s.q.follow(s.feed)
	}
	h.edge.mu.Unlock()
	s.Mu.Unlock()
	s.place = len(h.members)
	h.members = append(h.members, s)
	h.changed = true
}

// remove takes a subscriber out, if it ever was in.
func (h *shard) remove(s *sub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.place >= len(h.members) || h.members[s.place] != s {
		return
	}
	for _, t := range s.topics {
		h.index.drop(t.topic, s)
	}
	if len(s.topics) > 0 {
		h.edge.subscribers.Add(-1)
	}
	end := len(h.members) - 1
	h.members[s.place] = h.members[end]
	h.members[s.place].place = s.place
	h.members[end] = nil
	h.members = h.members[:end]
	h.changed = true
}

// subscribe adds a topic. The empty one attaches the subscriber to its feed.
func (h *shard) subscribe(s *sub, topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.topics.add(topic) {
		return
	}
	if len(s.topics) == 1 {
		h.edge.subscribers.Add(1)
		s.arrive()
	}
	if topic != "" || !s.encoding().topics {
		h.index.add(topic, s)
		return
	}
	s.lockMatched() // what was published before is for the topics that it had
	defer s.Mu.Unlock()
	defer h.edge.mu.Unlock()
	s.q.follow(s.feed)
}

// cancel takes a topic back.
func (h *shard) cancel(s *sub, topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.topics.drop(topic) {
		return
	}
	if len(s.topics) == 0 {
		h.edge.subscribers.Add(-1)
	}
	if topic != "" {
		h.index.drop(topic, s)
		return
	}
	s.lockMatched() // what was published before it has from the feed
	defer s.Mu.Unlock()
	defer h.edge.mu.Unlock()
	s.q.leave(s.feed)
}

// name subscribes to the topic of the minion that a subscriber has named. targeted: of what is for some minions it gets
// what is for that one.
func (h *shard) name(s *sub, topic string, targeted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.match() // what was published before is for a subscriber without a name
	if !s.topics.has(topic) && s.topics.add(topic) {
		h.index.add(topic, s)
	}
	if targeted && s.topics.drop("") {
		h.index.drop("", s)
	}
}

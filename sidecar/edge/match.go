package edge

import (
	"sync/atomic"
)

// broadcast is the topic Salt gives what concerns all minions.
const broadcast = "broadcast"

// record is one publication as filtering subscribers need it. Records are a
// list like chunks: those no shard has to look at any more are garbage.
type record struct {
	next   atomic.Pointer[record]
	seq    uint64
	topics []string
	cur    regions // of generation gen
	prev   regions // of the one before; no chunk: as cur
	gen    uint64
}

// body is where the bytes for a subscriber of generation gen lie.
func (r *record) body(gen uint64, t Transport) region {
	if gen < r.gen && r.prev[t].chunk != nil {
		return r.prev[t]
	}
	return r.cur[t]
}

// index finds the filtering subscribers of a topic: those who subscribed to a
// prefix of it. Only prefixes of subscribed lengths are looked up.
type index struct {
	byTopic map[string][]*sub
	lengths map[int]int // prefix length → topics of that length
}

func newIndex() index {
	return index{byTopic: make(map[string][]*sub), lengths: make(map[int]int)}
}

func (x *index) add(topic string, s *sub) {
	if len(x.byTopic[topic]) == 0 {
		x.lengths[len(topic)]++
	}
	x.byTopic[topic] = append(x.byTopic[topic], s)
}

func (x *index) drop(topic string, s *sub) {
	list := x.byTopic[topic]
	for i := range list {
		if list[i] != s {
			continue
		}
		end := len(list) - 1
		list[i], list[end] = list[end], nil
		x.byTopic[topic] = list[:end]
		if end == 0 {
			delete(x.byTopic, topic)
			if x.lengths[len(topic)]--; x.lengths[len(topic)] == 0 {
				delete(x.lengths, len(topic))
			}
		}
		return
	}
}

// match queues every new record for the filtering subscribers it is for.
// Wants shard.mu.
func (h *shard) match() {
	for r := h.rec.next.Load(); r != nil; r = r.next.Load() {
		h.rec = r
		if len(h.index.byTopic) == 0 {
			continue
		}
		for _, topic := range r.topics {
			h.matchTopic(r, topic)
		}
	}
}

func (h *shard) matchTopic(r *record, topic string) {
	var head *chunk
	for n := range h.index.lengths {
		if n > len(topic) {
			continue
		}
		for _, s := range h.index.byTopic[topic[:n]] {
			if s.lastSeen >= r.seq {
				continue
			}
			s.lastSeen = r.seq
			if !s.encoding().topics {
				s.putIn(r)
				continue
			}
			if head == nil {
				head = fixed(topicFrame(topic))
			}
			s.deliver(head, r)
		}
	}
}

// deliver queues a publication for a filtering subscriber.
func (s *sub) deliver(topic *chunk, r *record) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Closed() || s.q.open() != nil { // unfiltered as well: has it already
		return
	}
	s.enqueue(topic, r.body(s.feed.gen, s.wire.transport()))
}

// enqueue queues a publication behind its topic. Wants Mu.
func (s *sub) enqueue(topic *chunk, b region) {
	if b.chunk == nil { // it joined later
		return
	}
	s.q.segs = append(s.q.segs, whole(topic), b.rest())
	s.queued++
	s.queuedLen += int64(topic.used) + int64(b.end-b.start)
}

// putIn queues a publication for some minions where it belongs in the feed that
// they follow, or, where a full socket has taken more of that already, next.
func (s *sub) putIn(r *record) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	b := r.body(s.feed.gen, s.wire.transport())
	if s.Closed() || b.behind.chunk == nil { // for all, or it joined later
		return
	}
	s.edge.mu.Lock()
	s.q.insert(b)
	s.edge.mu.Unlock()
	s.queued++
	s.queuedLen += int64(b.end - b.start)
}

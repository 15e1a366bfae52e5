package edge

import (
	"slices"

	"saltclusterd/sidecar/edge/netconn"
)

// seg is a stretch of output: from off in a chunk, on through the chunks
// behind it, up to stop in last; without a last it follows the feed for ever.
type seg struct {
	at   *chunk
	last *chunk
	off  uint32
	stop uint32
	seen uint32 // messages of at that were written
	quit uint32 // messages of last up to stop
	cont bool   // continues the message that the seg before began
}

// whole is a seg of everything in a fixed chunk. It counts as no message:
// commands, topics and nudges are whole segs.
func whole(c *chunk) seg {
	_, b := c.published()
	return seg{at: c, last: c, stop: b}
}

// rest is a seg of one message's body, whose topic was the seg before.
func (r region) rest() seg {
	return seg{at: r.chunk, last: r.chunk, off: r.start, stop: r.end, quit: 1, cont: true}
}

// avail is what may be written from the chunk the seg is at: bytes up to to,
// messages up to n. more says that the seg continues behind this chunk.
func (s *seg) avail() (to, n uint32, more bool) {
	if s.at == s.last {
		return s.stop, s.quit, false
	}
	more = s.at.next.Load() != nil // before published: then that is final
	n, to = s.at.published()
	return to, n, more
}

// outq is what a subscriber has yet to get, in order. Usually it is a single
// seg: the cursor in the feed.
type outq struct {
	segs []seg
}

// gather lists the bytes that can be written now, in up to len(iov) pieces.
func (q *outq) gather(iov [][]byte) [][]byte {
	iov = iov[:0]
	for i := range q.segs {
		s := q.segs[i] // a copy walks ahead
		for {
			if len(iov) == cap(iov) {
				return iov
			}
			to, _, more := s.avail()
			if s.off < to {
				iov = append(iov, s.at.room[s.off:to:to])
			}
			if !more {
				break
			}
			s.at, s.off = s.at.next.Load(), 0
		}
	}
	return iov
}

// advance passes over n written bytes and returns how many messages were
// completed, as far as that is known without looking inside a chunk.
func (q *outq) advance(n int) (messages int) {
	done := 0                                                  // segs that are written whole
	defer func() { q.segs = slices.Delete(q.segs, 0, done) }() // keeps the room when none is left
	for done < len(q.segs) {
		s := &q.segs[done]
		to, count, more := s.avail()
		k := min(n, int(to-s.off))
		s.off += uint32(k)
		n -= k
		if s.off < to {
			return messages
		}
		messages += int(count - s.seen)
		s.seen = count
		switch {
		case more:
			s.at, s.off, s.seen = s.at.next.Load(), 0, 0
		case s.last == nil:
			return messages
		default:
			done++
		}
	}
	return messages
}

// urgent puts a seg of whole messages as far to the front as message
// boundaries allow. The feed's writer must be held off.
func (q *outq) urgent(s seg) {
	i := q.firstBoundary()
	for i < len(q.segs) && q.segs[i].cont {
		i++
	}
	q.segs = append(q.segs, seg{})
	copy(q.segs[i+1:], q.segs[i:])
	q.segs[i] = s
}

// insert puts a message that stands in no feed where it belongs in the one that
// is followed. The feed's writer must be held off.
func (q *outq) insert(r region) {
	message := seg{at: r.chunk, last: r.chunk, off: r.start, stop: r.end, quit: 1}
	o, p := q.open(), r.behind
	if o.at.base+int64(o.off) > p.chunk.base+int64(p.off) {
		q.urgent(message)
		return
	}
	o.last, o.stop, o.quit = p.chunk, p.off, p.messages
	q.segs = append(q.segs, message, seg{at: p.chunk, off: p.off, seen: p.messages})
}

// firstBoundary makes the end of the message being written a place between
// two segs, and returns the number of segs before it.
func (q *outq) firstBoundary() int {
	if len(q.segs) == 0 {
		return 0
	}
	f := &q.segs[0]
	if f.cont {
		return 1
	}
	if f.at.ends == nil { // fixed
		return min(int(f.off), 1)
	}
	count, end := f.at.boundary(f.off)
	if end == f.off {
		return 0
	}
	if f.at == f.last && end == f.stop {
		return 1
	}
	right := *f
	right.off, right.seen = end, count
	f.last, f.stop, f.quit = f.at, end, count
	q.segs = append(q.segs, seg{})
	copy(q.segs[2:], q.segs[1:])
	q.segs[1] = right
	return 1
}

// follow makes the queue continue with whatever f publishes from now on. Where it has just left f, it continues as if
// it had not: whoever goes and comes without end must not make the queue longer.
func (q *outq) follow(f *feed) {
	t := f.tail
	if n := len(q.segs); n > 0 {
		if s := &q.segs[n-1]; s.last == t && s.stop == uint32(t.used) && !s.cont {
			s.last, s.stop, s.quit = nil, 0, 0
			return
		}
	}
	q.segs = append(q.segs, seg{at: t, off: uint32(t.used), seen: uint32(len(t.ends))})
}

// leave ends the following of f with what it has published until now.
func (q *outq) leave(f *feed) {
	s := q.open()
	switch {
	case s == nil:
	case s.at == f.tail && s.off == uint32(f.tail.used): // nothing of it is left to be written
		*s = seg{}
		q.segs = q.segs[:len(q.segs)-1]
	default:
		s.last, s.stop, s.quit = f.tail, uint32(f.tail.used), uint32(len(f.tail.ends))
	}
}

// oldest is the first seg in f, nil if there is none. As long as the queue has it, everything that f publishes after
// that stays in memory.
func (q *outq) oldest(f *feed) *seg {
	for i := range q.segs {
		if q.segs[i].at.feed == f {
			return &q.segs[i]
		}
	}
	return nil
}

// open is the seg that follows a feed, nil if there is none.
func (q *outq) open() *seg {
	if n := len(q.segs); n > 0 && q.segs[n-1].last == nil {
		return &q.segs[n-1]
	}
	return nil
}

// all lists everything that can be written now.
func (q *outq) all() [][]byte {
	if q.size() == 0 { // as nearly always
		return nil
	}
	for room := make([][]byte, 0, netconn.MaxIOV); ; room = make([][]byte, 0, 4*cap(room)) {
		if iov := q.gather(room); len(iov) < cap(iov) {
			return iov
		}
	}
}

// size is how many bytes can be written now.
func (q *outq) size() (n int) {
	var room [netconn.MaxIOV][]byte
	for _, b := range q.gather(room[:]) {
		n += len(b)
	}
	return n
}

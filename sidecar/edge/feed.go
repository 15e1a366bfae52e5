package edge

import (
	"sync/atomic"
)

// feed is the publications of one generation as one transport encodes them,
// oldest first. It knows only its tail: what no cursor points to is garbage. All methods want
// PubEdge.mu, except floor.
type feed struct {
	gen  uint64
	enc  *encoding
	tail *chunk
	// lowest is the position below which a cursor whose socket is full is too
	// far behind.
	lowest atomic.Int64
	starts []int64 // ring: where the last messages start
	count  int     // messages so far
	bytes  int64   // how far back lowest may lag
}

func newFeed(gen uint64, enc *encoding, messages int, bytes int64) *feed {
	f := &feed{gen: gen, enc: enc, starts: make([]int64, messages), bytes: bytes}
	f.tail = &chunk{feed: f}
	return f
}

// head is the position behind the last message.
func (f *feed) head() int64 { return f.tail.base + int64(f.tail.used) }

// append encodes body as a message of its own and returns where it lies.
func (f *feed) append(body []byte) region {
	size := f.enc.size(body)
	if size > len(f.tail.room)-f.tail.used {
		next := &chunk{feed: f, room: make([]byte, max(size, chunkRoom)), base: f.head()}
		f.tail.next.Store(next)
		f.tail = next
	}
	t := f.tail
	start := t.used
	slot := f.count % len(f.starts)
	f.starts[slot] = f.head()
	f.count++
	t.append(f.enc, body)
	// A cursor may lag by QueueMessages or QueueBytes, but always by the
	// newest message, however large that is.
	low := f.head() - f.bytes
	if f.count > len(f.starts) {
		low = max(low, f.starts[f.count%len(f.starts)])
	}
	f.lowest.Store(max(f.lowest.Load(), min(low, f.starts[slot])))
	return region{chunk: t, start: uint32(start), end: uint32(t.used)}
}

// region is one message in a chunk.
type region struct {
	chunk      *chunk
	start, end uint32
	// behind is the place in the feed behind which it comes, of a message that
	// stands in no feed itself.
	behind place
}

// place is a boundary between two messages of a feed.
type place struct {
	chunk    *chunk
	off      uint32
	messages uint32 // of chunk, up to off
}

// end is the place behind the last message.
func (f *feed) end() place {
	return place{chunk: f.tail, off: uint32(f.tail.used), messages: uint32(len(f.tail.ends))}
}

// generation is the span between two Rotate calls: a feed for each transport
// that has or had a subscriber in it. PubEdge.mu guards it.
type generation struct {
	number   uint64
	messages int
	bytes    int64
	feeds    [transports]*feed
}

// feed returns that of a transport, which begins now if there was none.
func (g *generation) feed(t Transport) *feed {
	if g.feeds[t] == nil {
		g.feeds[t] = newFeed(g.number, &encodings[t], g.messages, g.bytes)
	}
	return g.feeds[t]
}

// regions is where a publication lies in the feeds of a generation.
type regions [transports]region

// put encodes body once for each transport in use. It goes into a feed if it is
// for all who follow that.
func (g *generation) put(body []byte, p *Publication) (r regions) {
	for t, f := range g.feeds {
		switch {
		case f == nil, p.TopicOnly && !f.enc.topics:
		case p.TopicOnly || len(p.Topics) > 0 && f.enc.named:
			c := f.enc.message(body)
			r[t] = region{chunk: c, end: uint32(c.used), behind: f.end()}
		default:
			r[t] = f.append(body)
		}
	}
	return r
}

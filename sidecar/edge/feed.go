package edge

import (
	"sync/atomic"

	"saltclusterd/sidecar/zmtp"
)

// feed is the encoded publications of one generation, oldest first. It knows
// only its tail: what no cursor points to is garbage. All methods want
// PubEdge.mu, except floor.
type feed struct {
	gen  uint64
	tail *chunk
	// lowest is the position below which a cursor whose socket is full is too
	// far behind.
	lowest atomic.Int64
	starts []int64 // ring: where the last messages start
	count  int     // messages so far
	bytes  int64   // how far back lowest may lag
}

func newFeed(gen uint64, messages int, bytes int64) *feed {
	return &feed{gen: gen, tail: &chunk{}, starts: make([]int64, messages), bytes: bytes}
}

// head is the position behind the last message.
func (f *feed) head() int64 { return f.tail.base + int64(f.tail.used) }

// append encodes body as a single-frame message and returns where it lies.
func (f *feed) append(body []byte) region {
	size := zmtp.MessageSize(body)
	if size > len(f.tail.room)-f.tail.used {
		next := &chunk{room: make([]byte, max(size, chunkRoom)), base: f.head()}
		f.tail.next.Store(next)
		f.tail = next
	}
	t := f.tail
	start := t.used
	slot := f.count % len(f.starts)
	f.starts[slot] = f.head()
	f.count++
	t.append(body)
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
}

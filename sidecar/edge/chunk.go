package edge

import (
	"sort"
	"sync/atomic"
)

// chunkRoom is the size of the buffers a feed is made of. A message never
// spans two; a larger one gets a buffer of its own.
const chunkRoom = 256 << 10

// chunk is a buffer of whole encoded messages, appended to by one writer and
// read by any number of cursors. Bytes below the published length never
// change.
type chunk struct {
	feed  *feed                 // nil: it belongs to none
	room  []byte                // of full length from the start
	used  int                   // the writer's
	ends  []uint32              // where messages end; the writer's
	base  int64                 // position of room[0] in the feed
	state atomic.Uint64         // published messages<<32 | published bytes
	next  atomic.Pointer[chunk] // set when this one is complete
}

// fixed makes a complete chunk that belongs to no feed.
func fixed(encoded []byte) *chunk {
	c := &chunk{room: encoded, used: len(encoded)}
	c.state.Store(uint64(len(encoded)))
	return c
}

// append encodes body as a message of its own and shows it to the cursors. The
// chunk must have room for it.
func (c *chunk) append(enc *encoding, body []byte) {
	c.used = len(enc.append(c.room[:c.used], body))
	c.ends = append(c.ends, uint32(c.used))
	c.state.Store(uint64(len(c.ends))<<32 | uint64(c.used))
}

// published is how many messages and bytes may be read.
func (c *chunk) published() (messages, bytes uint32) {
	s := c.state.Load()
	return uint32(s >> 32), uint32(s)
}

// boundary finds the end of the message that has begun at or before off, and
// the number of messages up to there. off itself is returned when it is an
// end. The writer must be held off.
func (c *chunk) boundary(off uint32) (messages, end uint32) {
	if off == 0 {
		return 0, 0
	}
	i := sort.Search(len(c.ends), func(i int) bool { return c.ends[i] >= off })
	return uint32(i) + 1, c.ends[i]
}

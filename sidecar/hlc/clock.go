package hlc

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Timestamp orders publications of a cluster: milliseconds since 1970 << 16 | counter.
type Timestamp uint64

// counterBits is the share of a timestamp that counts events within one millisecond.
const counterBits = 16

// MaxAhead bounds how far a remote timestamp may run ahead of the local wall clock before it is refused: one broken or
// hostile peer must not push the serials of the whole cluster into the far future.
const MaxAhead = 10 * time.Minute

// ErrAhead says that a remote timestamp is too far in the future to be believed.
var ErrAhead = errors.New("timestamp too far ahead of the local clock")

// At returns the first timestamp of t's millisecond.
func At(t time.Time) Timestamp { return Timestamp(uint64(t.UnixMilli()) << counterBits) }

// Time returns the wall-clock part of ts.
func (ts Timestamp) Time() time.Time { return time.UnixMilli(int64(ts >> counterBits)) }

// Clock hands out strictly growing timestamps. The zero value is not usable; see New.
type Clock struct {
	wall func() time.Time

	mu    sync.Mutex
	floor Timestamp
	last  Timestamp
}

// New returns a clock that starts above floor, the ceiling a previous run reserved (0: none).
func New(wall func() time.Time, floor Timestamp) *Clock {
	return &Clock{wall: wall, floor: floor, last: floor}
}

// GoOn makes a clock that has handed out nothing yet go on where another process's stopped.
func (c *Clock) GoOn(last Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor, c.last = last, last
}

// Now returns a timestamp above every one returned or observed before.
func (c *Clock) Now() Timestamp {
	now := At(c.wall())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, now)
	return c.last
}

// Last returns the highest timestamp handed out or observed, for peers to observe.
func (c *Clock) Last() Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Observe moves the clock to at least ts, heard from a peer. A timestamp more than MaxAhead in the future is refused
// with ErrAhead and changes nothing.
func (c *Clock) Observe(ts Timestamp) error {
	now := c.wall()
	if ahead := ts.Time().Sub(now); ahead > MaxAhead {
		return fmt.Errorf("peer clock is %s ahead: %w", ahead.Round(time.Second), ErrAhead)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, ts)
	return nil
}

// Skew returns how far the clock runs ahead of the wall clock, 0 when it does not.
func (c *Clock) Skew() time.Duration {
	return max(0, c.Last().Time().Sub(c.wall()))
}

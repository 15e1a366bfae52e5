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

// MaxAhead is how far a bounded clock lets itself be moved ahead of the reference.
const MaxAhead = 10 * time.Minute

// slack is how far a clock may run ahead of its time by counting. Beyond it the clock runs on at the pace of its time
// from where it is, so that clocks that cannot reach each other for a while stay in step.
const slack = time.Minute

const (
	// latest is the greatest timestamp that a wall clock can lead to, in the year 4199. Those above are for counting.
	latest Timestamp = 1 << 62
	// limit is the greatest timestamp that is accepted: a positive int64 is what msgpack and Python carry.
	limit Timestamp = latest + 1<<61
)

// ErrAhead says that a timestamp is too far in the future to be accepted.
var ErrAhead = errors.New("timestamp too far in the future")

// At returns the first timestamp of t's millisecond.
func At(t time.Time) Timestamp {
	const most = int64(latest >> counterBits)
	return Timestamp(min(max(t.UnixMilli(), 0), most)) << counterBits
}

// Time returns the wall-clock part of ts.
func (ts Timestamp) Time() time.Time { return time.UnixMilli(int64(ts >> counterBits)) }

// Clock hands out strictly growing timestamps. The zero value is not usable; see New.
type Clock struct {
	time  func() time.Time
	bound time.Duration // how far Observe moves the clock ahead of its time; 0: as far as it takes

	mu     sync.Mutex
	floor  Timestamp
	last   Timestamp
	offset Timestamp // by how much the clock runs ahead of its time
}

// New returns a clock that starts above floor, the ceiling a previous run reserved (0: none), and follows the
// timestamps it observes however far they are ahead. time is what it goes by, Reference.Time as a rule; while time
// returns the zero time, the clock only counts.
func New(time func() time.Time, floor Timestamp) *Clock {
	return &Clock{time: time, floor: floor, last: floor}
}

// NewBounded returns a clock for timestamps that are compared with times of files: it refuses what is more than
// MaxAhead ahead of time.
func NewBounded(time func() time.Time) *Clock {
	return &Clock{time: time, bound: MaxAhead}
}

// GoOn makes a clock that has handed out nothing yet continue where another process's stopped.
func (c *Clock) GoOn(last Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor, c.last = last, last
}

// Now returns a timestamp above every one returned or observed before.
func (c *Clock) Now() Timestamp {
	now := c.time()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, c.timestampAt(now))
	return c.last
}

// timestampAt is what the clock shows at now, but for counting. The caller holds mu.
func (c *Clock) timestampAt(now time.Time) Timestamp {
	if now.IsZero() {
		return 0
	}
	at := At(now) + c.offset
	if c.last > at+spanOf(slack) {
		c.offset += c.last - at
		at = c.last
	}
	return min(at, limit)
}

// Last returns the highest timestamp handed out or observed, for peers to observe.
func (c *Clock) Last() Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Observe moves the clock to at least ts, the timestamp of a peer. One that is refused with ErrAhead changes nothing.
func (c *Clock) Observe(ts Timestamp) error {
	if ts > limit {
		return ErrAhead
	}
	if c.bound > 0 {
		if ahead := ts.Time().Sub(c.time()); ahead > c.bound {
			return fmt.Errorf("%s ahead: %w", ahead.Round(time.Second), ErrAhead)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, ts)
	return nil
}

package hlc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"saltclusterd/durable"
)

const (
	// reserveAhead is how far above the current timestamp the stored ceiling lies.
	reserveAhead = 30 * time.Second
	// reserveEvery is how often the ceiling is moved; it must stay well below reserveAhead.
	reserveEvery = 10 * time.Second
	// reserveStep is what a run that still counts up from its floor reserves: six million timestamps.
	reserveStep = 100 * time.Millisecond
)

func spanOf(d time.Duration) Timestamp { return Timestamp(uint64(d.Milliseconds()) << counterBits) }

// ReadFloor returns the ceiling stored in path, 0 when the file does not exist.
func ReadFloor(path string) (Timestamp, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read clock floor: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
	if err == nil && Timestamp(n) > limit {
		err = ErrAhead
	}
	if err != nil {
		return 0, fmt.Errorf("read clock floor %s: %w (move it away; it is needed only if this host's clock was set back)", path, err)
	}
	return Timestamp(n), nil
}

// Reserve writes a ceiling above the clock's current timestamp to path, so that a restart on a machine whose clock was
// set back still starts above every serial handed out.
func (c *Clock) Reserve(path string) error { return WriteFloor(path, c.nextCeiling()) }

// nextCeiling is above all that is handed out until the next Reserve, even by a clock that was idle before. A daemon
// that is restarted over and over starts each time at the ceiling of the run before, and must not push it into the
// future.
func (c *Clock) nextCeiling() Timestamp {
	now := c.time()
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ahead := c.timestampAt(now), spanOf(reserveAhead)
	if c.floor != 0 && c.last <= c.floor+spanOf(reserveStep) {
		ahead = spanOf(reserveStep)
	}
	return max(c.last+ahead, at+spanOf(reserveAhead))
}

// WriteFloor stores a ceiling in path.
func WriteFloor(path string, ceiling Timestamp) error {
	if err := durable.WriteFile(path, fmt.Appendf(nil, "%d\n", ceiling), 0o600); err != nil {
		return fmt.Errorf("reserve clock: %w", err)
	}
	return nil
}

// KeepReserved calls Reserve every few seconds until ctx ends, and then gives back what was not used: nothing may be
// handed out any more. report gets each failure.
func (c *Clock) KeepReserved(ctx context.Context, path string, report func(error)) {
	tick := time.NewTicker(reserveEvery)
	defer tick.Stop()
	for {
		if err := c.Reserve(path); err != nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			if err := WriteFloor(path, c.Last()); err != nil {
				report(err)
			}
			return
		case <-tick.C:
		}
	}
}

package hlc

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestNow_Monotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wall := time.UnixMilli(1_700_000_000_000)
		c := New(func() time.Time { return wall }, 0)
		last := c.Now()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			wall = wall.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "step")) * time.Millisecond)
			if rapid.Bool().Draw(t, "observe") {
				_ = c.Observe(last + Timestamp(rapid.IntRange(0, 100).Draw(t, "ahead")))
			}
			now := c.Now()
			if now <= last {
				t.Fatalf("clock went from %d to %d", last, now)
			}
			last = now
		}
	})
}

func TestObserve_TooFarAhead(t *testing.T) {
	wall := time.UnixMilli(1_700_000_000_000)
	c := NewBounded(func() time.Time { return wall })
	before := c.Now()
	if err := c.Observe(At(wall.Add(MaxAhead + time.Minute))); !errors.Is(err, ErrAhead) {
		t.Fatalf("Observe: %v, want ErrAhead", err)
	}
	if got := c.Last(); got != before {
		t.Fatalf("a refused timestamp moved the clock from %d to %d", before, got)
	}
	require.NoError(t, c.Observe(At(wall.Add(time.Minute))))
	if got := c.Now(); got <= At(wall.Add(time.Minute)) {
		t.Fatalf("%d is not above what was observed", got)
	}
}

// The clock of node a was an hour ahead for a while, and its minions have seen its serials. The clock is right again;
// then a dies, and they come to b.
func TestObserve_PeerWasAhead(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for _, ahead := range []time.Duration{9 * time.Minute, time.Hour, 30 * 365 * 24 * time.Hour,
		200 * 365 * 24 * time.Hour} {
		wallA := now.Add(ahead)
		a := New(func() time.Time { return wallA }, 0)
		b := New(func() time.Time { return now }, 0)
		seen := a.Now()
		check.NoError(t, b.Observe(a.Last()), ahead)
		wallA = now
		if n := a.Now(); n <= seen {
			t.Errorf("%s: a goes back from %d to %d", ahead, seen, n)
		}
		if n := b.Now(); n <= seen {
			t.Errorf("%s: what b publishes is refused by a's minions for %s", ahead, seen.Time().Sub(n.Time()))
		}
	}
}

// Clocks that have followed one far ahead stay in step when they cannot reach each other, however much one of them
// publishes.
func TestClock_AheadInStep(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	wall := func() time.Time { return now }
	a, b := New(wall, 0), New(wall, 0)
	for _, c := range []*Clock{a, b} {
		require.NoError(t, c.Observe(At(now.Add(time.Hour))))
		c.Now()
	}
	for range 1000 {
		a.Now()
	}
	now = now.Add(time.Second)
	if seen, next := a.Last(), b.Now(); next <= seen {
		t.Errorf("a minion that comes from a has seen %d, and b stamps %d", seen, next)
	}
	if n := a.Now(); n.Time().Sub(now) > time.Hour+slack {
		t.Errorf("%s ahead", n.Time().Sub(now))
	}
}

// A restart on a host whose clock is right goes on at the pace of time from what the run before had reached.
func TestReserve_RestartAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	now := time.UnixMilli(1_700_000_000_000)
	wall := func() time.Time { return now }
	c := New(wall, 0)
	require.NoError(t, c.Observe(At(now.Add(time.Hour))))
	for range 10 {
		last := c.Now()
		require.NoError(t, c.Reserve(path))
		now = now.Add(reserveEvery)
		last = max(last, c.Now())
		floor, err := ReadFloor(path)
		if err != nil || floor < last {
			t.Fatalf("floor %d, handed out %d: %v", floor, last, err)
		}
		if c = New(wall, floor); c.Now() <= last {
			t.Fatalf("%d after %d", c.Last(), last)
		}
	}
}

// While the time is unknown the clock counts on.
func TestNow_TimeUnknown(t *testing.T) {
	now := time.Time{}
	c := New(func() time.Time { return now }, 0)
	c.GoOn(At(time.UnixMilli(1_700_000_000_000)))
	first := c.Last()
	for i := range 5 {
		if got := c.Now(); got != first+Timestamp(i)+1 {
			t.Fatalf("%d after %d", got, first)
		}
	}
	now = first.Time().Add(time.Hour)
	if got := c.Now(); got != At(now) {
		t.Errorf("%s, want %s", got.Time(), now)
	}
}

func TestTimestampsStayBelowTheLimit(t *testing.T) {
	for _, at := range []time.Time{{}, time.UnixMilli(-5), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if ts := At(at); ts > latest || ts>>63 != 0 {
			t.Errorf("%s: %d", at, ts)
		}
	}
	c := New(func() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, 0)
	if err := c.Observe(limit + 1); !errors.Is(err, ErrAhead) {
		t.Errorf("beyond the limit: %v", err)
	}
	check.NoError(t, c.Observe(limit))
	if a, b := c.Now(), c.Now(); a <= limit || b <= a || b>>63 != 0 {
		t.Errorf("%d, then %d", a, b)
	}
}

func TestRestartStaysAboveReservedCeiling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	if floor, err := ReadFloor(path); err != nil || floor != 0 {
		t.Fatalf("missing file: %d, %v", floor, err)
	}
	wall := time.UnixMilli(1_700_000_000_000)
	c := New(func() time.Time { return wall }, 0)
	last := c.Now()
	require.NoError(t, c.Reserve(path))
	floor, err := ReadFloor(path)
	require.NoError(t, err)
	restarted := New(func() time.Time { return wall.Add(-time.Hour) }, floor)
	if now := restarted.Now(); now <= last {
		t.Fatalf("after a restart with the clock set back: %d, not above %d", now, last)
	}
}

// Crashes do not push the clock ahead.
func TestReserve_RepeatedCrashes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	wall := time.UnixMilli(1_700_000_000_000)
	var last Timestamp
	for range 100 {
		floor, err := ReadFloor(path)
		require.NoError(t, err)
		c := New(func() time.Time { return wall }, floor)
		for range 2 {
			require.NoError(t, c.Reserve(path))
			if now := c.Now(); now <= last {
				t.Fatalf("%d after %d", now, last)
			} else {
				last = now
			}
		}
		wall = wall.Add(time.Second)
		if ahead := last.Time().Sub(wall); ahead > reserveAhead {
			t.Fatalf("%s ahead", ahead)
		}
	}
}

func TestReserve_Idle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	wall := time.UnixMilli(1_700_000_000_000)
	c := New(func() time.Time { return wall }, 0)
	c.Now()
	wall = wall.Add(time.Hour) // nothing is published
	require.NoError(t, c.Reserve(path))
	last := c.Now()
	floor, err := ReadFloor(path)
	if err != nil || floor < last {
		t.Fatalf("floor %d, handed out %d: %v", floor, last, err)
	}
}

// A clean stop gives the reserve back.
func TestKeepReserved_CleanStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	c := New(time.Now, 0)
	last := c.Now()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.KeepReserved(ctx, path, func(err error) { t.Error(err) })
	if floor, err := ReadFloor(path); err != nil || floor != last {
		t.Fatalf("floor %d, want %d: %v", floor, last, err)
	}
}

package hlc

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNowGrowsWhateverTheWallClockDoes(t *testing.T) {
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

func TestObserveRefusesTheFarFuture(t *testing.T) {
	wall := time.UnixMilli(1_700_000_000_000)
	c := New(func() time.Time { return wall }, 0)
	before := c.Now()
	if err := c.Observe(At(wall.Add(MaxAhead + time.Minute))); !errors.Is(err, ErrAhead) {
		t.Fatalf("Observe: %v, want ErrAhead", err)
	}
	if got := c.Last(); got != before {
		t.Fatalf("a refused timestamp moved the clock from %d to %d", before, got)
	}
	if err := c.Observe(At(wall.Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if got := c.Skew(); got != time.Minute {
		t.Fatalf("skew %s, want 1m", got)
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
	if err := c.Reserve(path); err != nil {
		t.Fatal(err)
	}
	floor, err := ReadFloor(path)
	if err != nil {
		t.Fatal(err)
	}
	restarted := New(func() time.Time { return wall.Add(-time.Hour) }, floor)
	if now := restarted.Now(); now <= last {
		t.Fatalf("after a restart with the clock set back: %d, not above %d", now, last)
	}
}

func TestCrashesDoNotPushTheClockAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	wall := time.UnixMilli(1_700_000_000_000)
	var last Timestamp
	for range 100 {
		floor, err := ReadFloor(path)
		if err != nil {
			t.Fatal(err)
		}
		c := New(func() time.Time { return wall }, floor)
		for range 2 {
			if err := c.Reserve(path); err != nil {
				t.Fatal(err)
			}
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

func TestAnIdleClockReservesToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	wall := time.UnixMilli(1_700_000_000_000)
	c := New(func() time.Time { return wall }, 0)
	c.Now()
	wall = wall.Add(time.Hour) // nothing is published
	if err := c.Reserve(path); err != nil {
		t.Fatal(err)
	}
	last := c.Now()
	floor, err := ReadFloor(path)
	if err != nil || floor < last {
		t.Fatalf("floor %d, handed out %d: %v", floor, last, err)
	}
}

func TestACleanStopGivesTheReserveBack(t *testing.T) {
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

package daemon

import (
	"testing"
	"time"

	"saltclusterd/consensus/state"
)

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		n    int
		rate float64
		want time.Duration
	}{
		{0, 400, 0},
		{5000, 0, 0}, // not measured yet
		{700, 1000, time.Second},
		{5000, 416, 17170 * time.Millisecond},
	} {
		if got := spread(tc.n, tc.rate).Round(10 * time.Millisecond); got != tc.want {
			t.Errorf("%d minions at %g/s: %s, want %s", tc.n, tc.rate, got, tc.want)
		}
	}
}

func TestUntilAged(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	of := func(age time.Duration) state.Epoch {
		return state.Epoch{N: 3, Audit: state.Audit{At: now.Add(-age).UnixMilli()}}
	}
	for _, tc := range []struct {
		e        state.Epoch
		interval time.Duration
		want     time.Duration
		counts   bool
	}{
		{of(time.Hour), 24 * time.Hour, 23 * time.Hour, true},
		{of(48 * time.Hour), 24 * time.Hour, 0, true},
		{of(-time.Hour), 24 * time.Hour, 25 * time.Hour, true}, // another node's clock is ahead
		{of(time.Hour), 0, 0, false},
		{state.Epoch{}, time.Hour, 0, false},
	} {
		if got, counts := untilAged(tc.e, tc.interval, now); got != tc.want || counts != tc.counts {
			t.Errorf("%+v: %s, %t", tc, got, counts)
		}
	}
}

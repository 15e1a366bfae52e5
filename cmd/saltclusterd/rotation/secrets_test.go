package rotation

import (
	"testing"
	"time"

	"saltclusterd/consensus/state"
)

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

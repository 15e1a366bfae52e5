package daemon

import (
	"testing"
	"time"
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

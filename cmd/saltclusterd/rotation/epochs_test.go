package rotation

import (
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/epochs"
)

func TestSignInTime(t *testing.T) {
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
		if got := signInTime(tc.n, tc.rate).Round(10 * time.Millisecond); got != tc.want {
			t.Errorf("%d minions at %g/s: %s, want %s", tc.n, tc.rate, got, tc.want)
		}
	}
}

func TestRemainingWindow(t *testing.T) {
	now := time.UnixMilli(1_000_000_000)
	for _, test := range []struct{ ago, want time.Duration }{
		{0, time.Minute}, {20 * time.Second, 40 * time.Second}, {time.Minute, 0}, {time.Hour, 0}, {-time.Hour, time.Minute},
	} {
		if got := remainingWindow(time.Minute, now.Add(-test.ago).UnixMilli(), now); got != test.want {
			t.Errorf("decided %s ago: %s, want %s", test.ago, got, test.want)
		}
	}
}

// A seed that was replaced before this process started is not good again for the whole window.
func TestSeedWindowFor_Restart(t *testing.T) {
	now := time.Now()
	s := NewEpochs(EpochsConfig{Seeds: epochs.NewSeeds(time.Now), RotateWindow: time.Minute})
	old := state.Seed{N: 3, Audit: state.Audit{At: now.Add(-time.Hour).UnixMilli()}}
	if got := s.seedWindowFor(old, now); got != 0 {
		t.Errorf("after a restart: %s", got)
	}
	s.cfg.Seeds.Begin(epochs.Seed{Number: 2}, epochs.Seed{}, 0)
	if got := s.seedWindowFor(old, now); got != s.seedWindow() {
		t.Errorf("of a rotation that has just been heard of: %s", got)
	}
}

package rotation

import (
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
)

// agedView is a cluster of a level whose AES key and session seed are so old.
func agedView(t *testing.T, level uint16, age time.Duration, now time.Time) state.View {
	t.Helper()
	key, err := newEpochKey()
	require.NoError(t, err)
	st := state.New()
	apply(t, st, initCommand(t))
	made := state.Audit{By: "m1", At: now.Add(-age).UnixMilli()}
	if level < state.LevelSeeds {
		apply(t, st, state.EpochRotate{Expect: 1, Key: key, Reason: reasonAge, Audit: made})
		return st.View()
	}
	apply(t, st, state.LevelSet{Level: level, Audit: made})
	apply(t, st, state.SeedRotate{Expect: 1, Key: key, Seed: newGossipKey(), Reason: reasonAge, Audit: made})
	return st.View()
}

func TestUntilAged(t *testing.T) {
	now := time.UnixMilli(1_900_000_000_000)
	const before = state.LevelSeeds - 1
	for _, tc := range []struct {
		level    uint16
		age      time.Duration
		interval time.Duration
		want     time.Duration
		counts   bool
	}{
		{state.LevelSeeds, time.Hour, 12 * time.Hour, 11 * time.Hour, true},
		{state.LevelSeeds, 48 * time.Hour, 12 * time.Hour, 0, true},
		{state.LevelSeeds, -time.Minute, 12 * time.Hour, 12*time.Hour + time.Minute, true},
		{state.LevelSeeds, -time.Hour, 12 * time.Hour, 0, true},               // of a clock that was ahead
		{state.LevelSeeds, -9000 * time.Hour, 0, 0, true},                     // of one that was a year ahead
		{state.LevelSeeds, time.Hour, 0, 23 * time.Hour, true},                // recorded requests become worthless all the same
		{state.LevelSeeds, 25 * time.Hour, 0, 0, true},                        //
		{state.LevelSeeds, time.Hour, 1000 * time.Hour, 23 * time.Hour, true}, //
		{before, time.Hour, 0, 0, false},                                      // a seed that is not replaced anyway
		{before, time.Hour, 1000 * time.Hour, 999 * time.Hour, true},
	} {
		if got, counts := untilAged(agedView(t, tc.level, tc.age, now), tc.interval, now); got != tc.want ||
			counts != tc.counts {
			t.Errorf("%+v: %s, %t", tc, got, counts)
		}
	}
	if left, counts := untilAged(state.New().View(), time.Hour, now); counts {
		t.Errorf("without an epoch: %s", left)
	}
}

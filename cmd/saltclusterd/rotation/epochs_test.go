package rotation

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
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
	check.Equal(t, s.seedWindowFor(old, now), 0, "after a restart")
	s.cfg.Seeds.Begin(epochs.Seed{Number: 2}, epochs.Seed{}, 0)
	check.Equal(t, s.seedWindowFor(old, now), s.seedWindow(), "of a rotation that has just been heard of")
}

// fakePublisher records the rotations that it is asked for.
type fakePublisher struct{ rotations []edge.Rotation }

func (*fakePublisher) Stats() edge.PubStats { return edge.PubStats{Subscribers: 7000} }

func (p *fakePublisher) Rotate(how edge.Rotation) { p.rotations = append(p.rotations, how) }

// fakeSignIns answers a thousand sign-ins per second.
type fakeSignIns struct{}

func (fakeSignIns) Rate() float64          { return 1000 }
func (fakeSignIns) Backlog() time.Duration { return 0 }

// fakeSigner signs everything alike.
type fakeSigner struct{}

func (fakeSigner) SignX931([]byte) ([]byte, error) { return []byte("signature"), nil }

func apply(t *testing.T, st *state.State, cmd state.Command) {
	t.Helper()
	require.NoError(t, st.ApplyCommands(cmd)[0].Err())
}

// initCommand makes a cluster of one.
func initCommand(t *testing.T) state.Init {
	t.Helper()
	key, err := newEpochKey()
	require.NoError(t, err)
	fp := strings.Repeat("ab", 32)
	return state.Init{
		Identity: state.Identity{ClusterID: "c", UUID: "u", IdentityFP: fp}, EpochKey: key, GossipKey: newGossipKey(),
		Founder:     state.Member{ID: "m1", Addr: "192.0.2.1:4520", Fingerprint: fp, Weight: 100},
		SessionSeed: newGossipKey(), Audit: state.Audit{By: "m1", At: 1, Cause: "bootstrap"},
	}
}

// A publication waits for the rotation after a deletion as long as a majority can decide about it.
func TestEpochs_AwaitRotation(t *testing.T) {
	for name, c := range map[string]struct {
		caughtUp func(waited time.Duration) bool
		rotated  time.Duration // 0: never
		want     time.Duration
	}{
		"without a majority":          {func(time.Duration) bool { return false }, 0, rotationTimeout},
		"slow disks":                  {func(time.Duration) bool { return true }, 3 * time.Second, 3 * time.Second},
		"disks that are far too slow": {func(time.Duration) bool { return true }, 0, decidedTimeout},
		"the majority goes": {
			func(waited time.Duration) bool { return waited < 2*time.Second }, 0, 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, start := state.New(), time.Now()
				apply(t, st, initCommand(t))
				e := NewEpochs(EpochsConfig{
					View: st.View, Manager: epochs.New(fakeSigner{}, time.Now, nil), Seeds: epochs.NewSeeds(time.Now),
					Publisher: &fakePublisher{}, SignIns: fakeSignIns{}, RotateWindow: time.Minute,
					Nudge:      func() ([]byte, error) { return []byte("nudge"), nil },
					AnswerBoth: func(state.View) error { return nil },
					CaughtUp:   func() bool { return c.caughtUp(time.Since(start)) },
					Logger:     slog.New(slog.DiscardHandler),
				})
				require.NoError(t, e.Begin(st.View()))
				for _, s := range []state.KeyState{state.KeyAccepted, state.KeyRejected} {
					apply(t, st, state.KeySet{
						ID: "web1", State: s, Pub: "PEM", BaseRev: st.View().KeyRev("web1"), Audit: state.Audit{By: "m1", At: 3},
					})
				}
				key, err := newEpochKey()
				require.NoError(t, err)
				if c.rotated > 0 {
					time.AfterFunc(c.rotated, func() {
						st.ApplyCommands(state.EpochRotate{Expect: 1, Key: key, Reason: state.ReasonRevoked, Audit: state.Audit{By: "m1"}})
						_ = e.Begin(st.View())
					})
				}
				e.AwaitRotation(t.Context())
				if waited := time.Since(start); waited < c.want || waited > c.want+2*rotationPoll {
					t.Errorf("waited %s, want %s", waited, c.want)
				}
			})
		})
	}
}

func TestBegin_MovesSubscribers(t *testing.T) {
	newKey := func() state.Secret {
		t.Helper()
		key, err := newEpochKey()
		require.NoError(t, err)
		return key
	}
	st := state.New()
	apply(t, st, initCommand(t))
	var nudgeErr error
	publisher := &fakePublisher{}
	e := NewEpochs(EpochsConfig{
		View: st.View, Manager: epochs.New(fakeSigner{}, time.Now, nil), Seeds: epochs.NewSeeds(time.Now),
		Publisher: publisher, SignIns: fakeSignIns{}, RotateWindow: time.Minute, Logger: slog.New(slog.DiscardHandler),
		Nudge:      func() ([]byte, error) { return []byte("nudge"), nudgeErr },
		AnswerBoth: func(state.View) error { return nil },
	})
	if err := e.Begin(st.View()); err != nil || len(publisher.rotations) != 0 {
		t.Fatalf("the first epoch: %v, %d rotations", err, len(publisher.rotations))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.AwaitRotation(ctx) // no rotation is due: returns at once
	apply(t, st, state.EpochRotate{Expect: 1, Key: newKey(), Reason: reasonOperator, Audit: state.Audit{By: "m1", At: 2}})
	nudgeErr = errors.New("no key")
	if err := e.Begin(st.View()); !errors.Is(err, nudgeErr) || len(publisher.rotations) != 0 {
		t.Fatalf("without a nudge: %v, %d rotations", err, len(publisher.rotations))
	}
	nudgeErr = nil
	for range 2 { // once
		if err := e.Begin(st.View()); err != nil || len(publisher.rotations) != 1 {
			t.Fatalf("%v, %d rotations", err, len(publisher.rotations))
		}
	}
	if got := publisher.rotations[0]; got.Window != time.Minute || got.Hold || got.Busy != nil {
		t.Errorf("a rotation of an operator: %+v", got)
	}
	for _, s := range []state.KeyState{state.KeyAccepted, state.KeyRejected} {
		apply(t, st, state.KeySet{
			ID: "web1", State: s, Pub: "PEM", BaseRev: st.View().KeyRev("web1"), Audit: state.Audit{By: "m1", At: 3},
		})
	}
	if v := st.View(); !v.RotationDue() || e.isRotated(v) {
		t.Fatal("no rotation is due after a revocation")
	}
	apply(t, st, state.EpochRotate{Expect: 2, Key: newKey(), Reason: state.ReasonRevoked, Audit: state.Audit{By: "m1"}})
	if err := e.Begin(st.View()); err != nil || len(publisher.rotations) != 2 || !e.isRotated(st.View()) {
		t.Fatalf("after a revocation: %v, %d rotations", err, len(publisher.rotations))
	}
	if got := publisher.rotations[1]; got.Window != 10*time.Second || !got.Hold || got.Busy() || got.Late != rotateLate {
		t.Errorf("a rotation after a revocation: %+v", got)
	}
}

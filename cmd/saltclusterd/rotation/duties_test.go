package rotation

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// fakeLog is the log of a leader, m1, with a member m2.
type fakeLog struct {
	*state.State
	voters  atomic.Pointer[[]node.ID] // that raft sends the log to
	changed chan struct{}
}

func newFakeLog(t *testing.T) *fakeLog {
	t.Helper()
	l := &fakeLog{State: state.New(), changed: make(chan struct{}, 1)}
	l.voters.Store(&[]node.ID{"m1", "m2"})
	apply(t, l.State, initCommand(t))
	apply(t, l.State, state.MemberAdd{ID: "m2", Addr: "10.0.0.2:4520", Fingerprint: strings.Repeat("2", 64), Weight: 100})
	apply(t, l.State, state.LevelSet{Level: state.LevelSeeds, Audit: state.Audit{At: time.Now().UnixMilli()}})
	l.rotate(t.Context())
	return l
}

func (l *fakeLog) Status() consensus.Status              { return consensus.Status{Voters: *l.voters.Load()} }
func (l *fakeLog) CaughtUp() bool                        { return true }
func (l *fakeLog) Barrier(context.Context) error         { return nil }
func (l *fakeLog) Watch(context.Context) <-chan struct{} { return l.changed }

func (l *fakeLog) Propose(_ context.Context, cmds ...state.Command) ([]state.Result, error) {
	for i, c := range cmds {
		cmds[i] = state.Stamp(c, state.Audit{By: "m1", At: time.Now().UnixMilli()}, l.View().Rev())
	}
	return l.ApplyCommands(cmds...), nil
}

func (l *fakeLog) rotate(ctx context.Context) {
	_, _ = l.RotateEpoch(ctx, l.View().Epochs().Current.N, "test", newEpochKey)
}

// RotateEpoch replaces the seed as well, as consensus.Node does.
func (l *fakeLog) RotateEpoch(
	ctx context.Context, expect uint64, reason string, newKey func() (state.Secret, error),
) (state.Epoch, error) {
	key, err := newKey()
	if err == nil {
		_, err = l.Propose(ctx, state.SeedRotate{Expect: expect, Key: key, Seed: newGossipKey(), Reason: reason})
	}
	return l.View().Epochs().Current, err
}

// decide changes what the members agree on, which wakes the duties.
func (l *fakeLog) decide(t *testing.T, cmd state.Command) {
	t.Helper()
	apply(t, l.State, cmd)
	l.changed <- struct{}{}
}

// runDuty runs a duty of the leader in a bubble of synctest.
func runDuty(t *testing.T, l *fakeLog, duty func(*Secrets, context.Context), moving *atomic.Bool) {
	s := NewSecrets(SecretsConfig{
		Membership: Membership{Self: "m1", Log: l, Alive: func(node.ID) bool { return true },
			Logger: slog.New(slog.DiscardHandler)},
		Moving: func() bool { return moving != nil && moving.Load() },
		Revisions: func(context.Context, []state.Member) map[node.ID]uint64 {
			return map[node.ID]uint64{"m1": l.View().Rev()}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		duty(s, ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// TestSecrets_KeepAES replaces the AES key after a removal of a key at once, and when it is old.
func TestSecrets_KeepAES(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLog(t)
		runDuty(t, l, (*Secrets).KeepAES, nil)
		first := l.View().Epochs().Current.N
		l.decide(t, state.KeySet{ID: "web", State: state.KeyAccepted, Pub: "pub"})
		time.Sleep(time.Minute)
		if now := l.View().Epochs().Current; now.N != first {
			t.Errorf("epoch %d (%s) after a key was accepted", now.N, now.Reason)
		}
		l.decide(t, state.KeySet{ID: "web", State: state.KeyDeleted, BaseRev: l.View().KeyRev("web")})
		time.Sleep(2 * coalesceRevocations)
		if now := l.View().Epochs().Current; now.N != first+1 || now.Reason != state.ReasonRevoked {
			t.Errorf("epoch %d (%s) after a key was deleted", now.N, now.Reason)
		}
		l.changed <- struct{}{} // its own decision
		time.Sleep(maxSeedAge + time.Minute)
		if now := l.View().Epochs().Current; now.N != first+2 || now.Reason != reasonAge {
			t.Errorf("epoch %d (%s) a day later", now.N, now.Reason)
		}
	})
}

// TestSecrets_AfterRemoval replaces the session seed and the gossip key when a member was removed, as soon as it does
// not get the log any more, and the seed when the minions of an earlier rotation have moved.
func TestSecrets_AfterRemoval(t *testing.T) {
	for name, duty := range map[string]func(*Secrets, context.Context){
		"seed": (*Secrets).KeepSeed, "gossip key": (*Secrets).KeepGossipKey,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newFakeLog(t)
				var moving atomic.Bool
				moving.Store(name == "seed")
				number := func() uint64 {
					if name == "seed" {
						return l.View().Seeds().Current.N
					}
					return l.View().GossipKeys()[0].N
				}
				runDuty(t, l, duty, &moving)
				first := number()
				check := func(when string, want uint64) {
					t.Helper()
					time.Sleep(10 * leaderInterval)
					synctest.Wait()
					if got := number(); got != want {
						t.Errorf("%s: number %d, want %d", when, got, want)
					}
				}
				check("nobody was removed", first)
				apply(t, l.State, state.MemberRemove{ID: "m2"})
				check("the removed member gets the log", first)
				l.voters.Store(&[]node.ID{"m1"})
				if moving.Load() {
					check("minions are being moved", first)
					moving.Store(false)
				}
				check("it gets the log no more", first+1)
				check("and once is enough", first+1)
				if keys := l.View().GossipKeys(); name != "seed" && len(keys) != 1 {
					t.Errorf("the former gossip key is accepted: %d keys", len(keys))
				}
			})
		})
	}
}

package catchup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

func peers(ids ...node.ID) func() (there, absent []node.ID) {
	return func() ([]node.ID, []node.ID) { return slices.Clone(ids), nil }
}

func find(t *testing.T, r *Runner, name string) Status {
	t.Helper()
	all := r.Status()
	i := slices.IndexFunc(all, func(s Status) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no part %q", name)
	}
	return all[i]
}

// A pull that breaks off goes on at the next peer; what is done is said all the while.
func TestRun_NextPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []node.ID
		have := int64(0)
		done := 0
		r := New(Config{Peers: peers("a", "b"), Parts: []Part{{Name: "grains", Done: func() { done++ },
			Pull: func(ctx context.Context, from node.ID, tell func(Report)) error {
				asked = append(asked, from)
				for ; have < 10; have++ {
					if from == "a" && have == 4 {
						return errors.New("connection reset")
					}
					tell(Report{Done: have, Total: 10})
				}
				tell(Report{Done: have, Total: 10})
				return nil
			}}}})
		if st := find(t, r, "grains"); st.State != StateWaiting || !st.Open() {
			t.Errorf("before: %+v", st)
		}
		require.NoError(t, r.Run(t.Context()))
		st := find(t, r, "grains")
		if !slices.Equal(asked, []node.ID{"a", "b"}) || st.State != StateDone || st.Done != 10 || st.From != "b" ||
			st.Open() || done != 1 {
			t.Errorf("asked %v, done %d times: %+v", asked, done, st)
		}
	})
}

// Nothing is waited for when there is nobody else, or nothing to be had.
func TestNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		never := func(context.Context, node.ID, func(Report)) error { t.Error("asked"); return nil }
		r := New(Config{
			Peers: peers(),
			Parts: []Part{{Name: "jobs", Pull: never}, {Name: "tokens", Pull: never, Off: "the masters share a file system"}},
		})
		if err := r.Run(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if st := find(t, r, "tokens"); st.State != StateOff || st.Err == "" {
			t.Errorf("%+v", st)
		}
	})
}

// Who has just started may not have heard yet that somebody is there.
func TestAbsentPeerIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{
			Peers: func() (there, absent []node.ID) { return nil, []node.ID{"a"} },
			Parts: []Part{{Name: "jobs", Pull: func(context.Context, node.ID, func(Report)) error { return nil }}},
		})
		require.NoError(t, r.Run(t.Context()))
		if st := find(t, r, "jobs"); st.State != StateDone || st.From != "a" {
			t.Errorf("%+v", st)
		}
	})
}

// Who could give what is lacking is gone: bounded, and the reason is told.
func TestGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		there  []node.ID
		within time.Duration
		after  time.Duration
		reason string
	}{
		{"nobody is there", nil, 30 * time.Second, 10 * time.Second, "disk on fire"},
		{"somebody is there and fails", []node.ID{"a"}, 3 * time.Minute, 2 * time.Minute, "disk on fire"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := New(Config{
					Peers: func() ([]node.ID, []node.ID) { return tt.there, []node.ID{"z"} },
					Parts: []Part{
						{Name: "jobs", Pull: func(context.Context, node.ID, func(Report)) error { return errors.New("disk on fire") }},
						{Name: "roots", Await: func(ctx context.Context, tell func(Report)) error {
							tell(Report{Starved: true, Note: "a piece is nowhere; is there anybody? disk on fire"})
							<-ctx.Done()
							return ctx.Err()
						}},
					},
				})
				require.NoError(t, r.Run(t.Context()))
				if d := time.Since(began); d < tt.after || d > tt.within {
					t.Errorf("given up after %v", d)
				}
				for _, name := range []string{"jobs", "roots"} {
					if st := find(t, r, name); st.State != StateGivenUp || !strings.Contains(st.Err, tt.reason) {
						t.Errorf("%+v", st)
					}
				}
			})
		})
	}
}

// Whoever gets something is waited for, however long it takes; so is what a node cannot serve without.
func TestWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := New(Config{
			Peers: peers("a"),
			Parts: []Part{
				{Name: "roots", Await: func(_ context.Context, tell func(Report)) error {
					for i := range int64(20) {
						tell(Report{Done: i, Total: 20, Unit: Bytes})
						time.Sleep(time.Minute)
					}
					return nil
				}},
				{Name: "keys", Needed: true, Await: func(_ context.Context, tell func(Report)) error {
					time.Sleep(30 * time.Minute)
					return nil
				}},
			},
		})
		require.NoError(t, r.Run(t.Context()))
		if d := time.Since(began); d < 30*time.Minute {
			t.Errorf("after %v", d)
		}
		for _, name := range []string{"roots", "keys"} {
			if st := find(t, r, name); st.State != StateDone {
				t.Errorf("%+v", st)
			}
		}
	})
}

// A peer that hangs costs its timeout once, then the next is asked.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := New(Config{Silence: 20 * time.Second, Peers: peers("hung", "b"),
			Parts: []Part{{Name: "mines", Pull: func(ctx context.Context, from node.ID, tell func(Report)) error {
				if from == "hung" {
					<-ctx.Done()
					return ctx.Err()
				}
				tell(Report{Done: 1, Total: 1})
				return nil
			}}}})
		require.NoError(t, r.Run(t.Context()))
		if st := find(t, r, "mines"); st.State != StateDone || st.From != "b" || time.Since(began) > 30*time.Second {
			t.Errorf("%+v after %v", st, time.Since(began))
		}
	})
}

// A cluster in the middle of an upgrade: nobody can be pulled from, and nobody waits for that.
func TestOlderPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := New(Config{Peers: peers("a", "b"), Parts: []Part{{Name: "jobs",
			Pull: func(context.Context, node.ID, func(Report)) error { return ErrOlder }}}})
		if err := r.Run(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The end of the process ends it, in the middle of whatever.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var began sync.WaitGroup
	began.Add(2)
	r := New(Config{Peers: peers("a"), Parts: []Part{
		{Name: "keys", Needed: true, Await: func(ctx context.Context, _ func(Report)) error {
			began.Done()
			<-ctx.Done()
			return ctx.Err()
		}},
		{Name: "jobs", Pull: func(ctx context.Context, _ node.ID, _ func(Report)) error {
			began.Done()
			<-ctx.Done()
			return ctx.Err()
		}},
	}})
	go func() {
		began.Wait()
		cancel()
	}()
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

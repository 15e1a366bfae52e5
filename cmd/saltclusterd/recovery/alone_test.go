package recovery

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// fakeLog is the consensus log of m1.
type fakeLog struct {
	members  *state.State
	status   consensus.Status
	caughtUp atomic.Bool
}

func (l *fakeLog) View() state.View                { return l.members.View() }
func (l *fakeLog) Status() consensus.Status        { return l.status }
func (l *fakeLog) CaughtUp() bool                  { return l.caughtUp.Load() }
func (l *fakeLog) LocalStats() consensus.PeerStats { return consensus.PeerStats{LastIndex: 7} }
func (l *fakeLog) Barrier(context.Context) error   { return nil }

// newLog returns the log of m1 in a cluster with m2 and m3.
func newLog(t *testing.T) *fakeLog {
	t.Helper()
	l := &fakeLog{members: state.New(), status: consensus.Status{Voters: []node.ID{"m1", "m2", "m3"}}}
	l.apply(t, state.Init{
		Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
		EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		GossipKey:   state.SecretText(strings.Repeat("g", 32)),
	}, addMember("2"), addMember("3"))
	return l
}

func addMember(digit string) state.MemberAdd {
	return state.MemberAdd{
		ID: node.ID("m" + digit), Addr: "10.0.0." + digit + ":4520", Fingerprint: strings.Repeat(digit, 64), Weight: 100,
	}
}

func (l *fakeLog) apply(t *testing.T, cmds ...state.Command) {
	t.Helper()
	for _, r := range l.members.ApplyCommands(cmds...) {
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
}

var errUnreachable = &net.OpError{Op: "dial", Err: errors.New("no route to host")}

// newAlone returns an Alone of m1, whose contact was a minute ago and which reaches no other member.
func newAlone(t *testing.T, change ...func(*AloneConfig)) (*Alone, *fakeLog) {
	t.Helper()
	l, contact := newLog(t), newContact(t)
	contact.note(t, time.Now().Add(-time.Minute))
	cfg := AloneConfig{
		Self: "m1", Log: l, Contact: contact,
		Dial:      func(context.Context, node.ID, string) (net.Conn, error) { return nil, errUnreachable },
		AwaitKeys: func(context.Context, uint64) error { return nil },
		Arriving:  func() bool { return false },
		Waiting:   func(step string) { t.Errorf("waits: %s", step) },
		End:       func(reason string) { t.Errorf("ended: %s", reason) },
		Logger:    slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	return NewAlone(cfg), l
}

func TestAlone_IsAllowed(t *testing.T) {
	dialing := func(errs map[node.ID]error) func(*AloneConfig) {
		return func(c *AloneConfig) {
			c.Dial = func(_ context.Context, id node.ID, _ string) (net.Conn, error) {
				if err := errs[id]; err != nil {
					return nil, err
				}
				own, other := net.Pipe()
				_ = other.Close()
				return own, nil
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*AloneConfig)
		want   bool
	}{
		"no member is reached": {func(*AloneConfig) {}, true},
		"members let it in":    {dialing(nil), true},
		"members are slow": {
			dialing(map[node.ID]error{"m2": os.ErrDeadlineExceeded, "m3": context.DeadlineExceeded}), true,
		},
		"a member is busy": {dialing(map[node.ID]error{"m2": peer.ErrBusy}), true},
		"a member turns it away": {
			dialing(map[node.ID]error{"m2": errUnreachable, "m3": errors.New("bad certificate")}), false,
		},
		"it is not a member":    {func(c *AloneConfig) { c.Self = "m9" }, false},
		"a leader speaks to it": {func(c *AloneConfig) { c.Log.(*fakeLog).status.HasQuorum = true }, false},
		"it has no state":       {func(c *AloneConfig) { c.Log.(*fakeLog).members = state.New() }, false},
	} {
		a, _ := newAlone(t, c.change)
		if got := a.IsAllowed(t.Context()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAlone_AwaitCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l := newAlone(t)
		l.caughtUp.Store(true)
		if err := a.AwaitCluster(t.Context()); err != nil || a.Serving() {
			t.Errorf("caught up: serving alone %v, %v", a.Serving(), err)
		}
		a, l = newAlone(t)
		time.AfterFunc(majorityTimeout-time.Second, func() { l.caughtUp.Store(true) })
		if err := a.AwaitCluster(t.Context()); err != nil || a.Serving() {
			t.Errorf("caught up in time: serving alone %v, %v", a.Serving(), err)
		}
		a, _ = newAlone(t)
		start := time.Now()
		if err := a.AwaitCluster(t.Context()); err != nil || !a.Serving() || time.Since(start) < majorityTimeout {
			t.Errorf("without a majority: serving alone %v after %s, %v", a.Serving(), time.Since(start), err)
		}
		waits := ""
		a, _ = newAlone(t, func(c *AloneConfig) {
			c.Contact.Limit, c.Waiting = time.Second, func(step string) { waits = step }
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.AwaitCluster(ctx); !errors.Is(err, context.DeadlineExceeded) || a.Serving() ||
			!strings.Contains(waits, "cluster_alone_limit") {
			t.Errorf("after the limit: serving alone %v, waits for %q, %v", a.Serving(), waits, err)
		}
	})
}

func TestAlone_KeepLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Duration
		start := time.Now()
		a, l := newAlone(t, func(c *AloneConfig) {
			c.Contact.Limit = 2 * time.Minute
			c.Arriving = func() bool { return time.Since(start) < 4*time.Minute }
			c.End = func(string) { ended = time.Since(start) }
		})
		l.caughtUp.Store(true)
		time.AfterFunc(time.Minute+time.Second, func() { l.caughtUp.Store(false) })
		a.KeepLimit(t.Context())
		// It polls in steps that are the same for all of the process, which may begin in the middle of one.
		if ended < 4*time.Minute || ended >= 4*time.Minute+aloneInterval {
			t.Errorf("ended after %s", ended)
		}
	})
}

func TestAlone_FindCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newAlone(t, func(c *AloneConfig) {
			c.AwaitKeys = func(context.Context, uint64) error { t.Error("was not alone"); return nil }
		})
		a.FindCluster(t.Context())

		a, l := newAlone(t)
		a.Begin()
		time.AfterFunc(time.Hour, func() { l.caughtUp.Store(true) })
		start := time.Now()
		if a.FindCluster(t.Context()); a.Serving() || time.Since(start) < time.Hour {
			t.Errorf("serving alone %v after %s", a.Serving(), time.Since(start))
		}

		a, l = newAlone(t, func(c *AloneConfig) {
			c.AwaitKeys = func(context.Context, uint64) error { return context.Canceled }
		})
		a.Begin()
		l.caughtUp.Store(true)
		if a.FindCluster(t.Context()); !a.Serving() {
			t.Error("not alone, although the key files are older")
		}
	})
}

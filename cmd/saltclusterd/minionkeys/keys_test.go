package minionkeys

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/catchup"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/signin"
)

// fakeLog is a log of one node.
type fakeLog struct {
	*state.State
	behind   bool // this node has not caught up
	lacking  time.Duration
	proposed error // instead of proposing
	barrier  error
}

func (l *fakeLog) CaughtUp() bool { return !l.behind }

func (l *fakeLog) Behind() time.Duration { return l.lacking }

func (l *fakeLog) Barrier(context.Context) error { return l.barrier }

func (l *fakeLog) Propose(_ context.Context, commands ...state.Command) ([]state.Result, error) {
	if l.proposed != nil {
		return nil, l.proposed
	}
	return l.ApplyCommands(commands...), nil
}

// fakeDir has the key files up to a revision.
type fakeDir struct{ rev uint64 }

func (d *fakeDir) Synced(rev uint64) bool { return rev <= d.rev }

func (d *fakeDir) Writing() (done, total int) { return int(d.rev), 100 }

func (d *fakeDir) WaitSynced(ctx context.Context, rev uint64) error {
	if d.Synced(rev) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// newKeys returns the keys of a node that has a cluster, and what it works on.
func newKeys(t *testing.T, change ...func(*Config)) (*Keys, *fakeLog, *fakeDir) {
	t.Helper()
	log, dir := &fakeLog{State: state.New()}, &fakeDir{rev: 1 << 40}
	apply(t, log, state.Init{
		Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
		EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		GossipKey:   state.SecretText(strings.Repeat("g", 32)),
	})
	seeds := epochs.NewSeeds(time.Now)
	seeds.Begin(epochs.Seed{Number: 1, Secret: []byte("first")}, epochs.Seed{}, time.Hour)
	cfg := Config{
		Log: log, Dir: dir, Seeds: seeds, Audit: func(cause string) state.Audit { return audit(cause) },
		AwaitRevision: func(context.Context, uint64) error { return nil },
		BeginEpoch:    func(state.View) error { return nil }, Alone: func() bool { return false }, Now: time.Now,
	}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg), log, dir
}

func audit(cause string) state.Audit { return state.Audit{By: "m1", At: 1, Cause: cause} }

func apply(t *testing.T, log *fakeLog, commands ...state.Command) {
	t.Helper()
	for _, r := range log.ApplyCommands(commands...) {
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
}

// set decides about a minion's key.
func set(t *testing.T, log *fakeLog, id string, to state.KeyState, pub string) {
	t.Helper()
	apply(t, log, state.KeySet{ID: id, State: to, Pub: pub, BaseRev: log.View().KeyRev(id), Audit: audit("test")})
}

// TestLeaveOut: the ids of a deltaproxy have one key, and start together; a minion whose key was deleted after something
// was published is not meant by that.
func TestLeaveOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, log, _ := newKeys(t)
		decide := func(id string, to state.KeyState, pub string) {
			t.Helper()
			apply(t, log, state.KeySet{ID: id, State: to, Pub: pub, BaseRev: log.View().KeyRev(id),
				Audit: state.Audit{By: "m1", At: time.Now().UnixMilli(), Cause: "test"}})
		}
		for _, id := range []string{"control", "sub1", "sub2"} {
			decide(id, state.KeyAccepted, "pub-1")
		}
		decide("web", state.KeyAccepted, "pub-2")
		decide("pending", state.KeyPending, "pub-1")
		time.Sleep(time.Minute)
		published := time.Now()
		check := func(what string, want []string, started ...string) {
			t.Helper()
			if got := k.LeaveOut(started, time.Since(published)); !slices.Equal(got, want) {
				t.Errorf("%s, started %q: %q, want %q", what, started, got, want)
			}
		}
		check("nothing has changed", nil)
		check("nothing has changed", []string{"web"}, "web")
		check("nothing has changed", []string{"unknown"}, "unknown")
		check("nothing has changed", []string{"control", "sub1", "sub2", "web"}, "control", "web")
		check("nothing has changed", []string{"control", "sub1", "sub2"}, "sub2")

		time.Sleep(2 * clocksApart)
		decide("sub1", state.KeyDeleted, "")
		decide("sub2", state.KeyDeleted, "")
		check("two were deleted", []string{"control", "sub1", "sub2"}, "control")
		time.Sleep(time.Second)
		decide("sub2", state.KeyAccepted, "pub-3")
		check("and one is accepted again", []string{"control", "sub1", "sub2"}, "control")
		published = time.Now().Add(2 * clocksApart)
		check("later", []string{"control"}, "control")
		decide("sub1", state.KeyAccepted, "pub-1")
		decide("sub2", state.KeyRejected, "pub-3")
		decide("web", state.KeyDeleted, "")
		decide("web", state.KeyAccepted, "pub-1")
		published = time.Now().Add(2 * clocksApart)
		check("keys have changed hands", []string{"control", "sub1", "web"}, "web")
		check("keys have changed hands", []string{"sub2"}, "sub2")
		time.Sleep(keepChanges + time.Second)
		decide("new", state.KeyAccepted, "pub-4")
		decide("web", state.KeyDeleted, "")
		if check("much later", []string{"web"}); len(k.changes.latest) != 1 {
			t.Errorf("%d changes are remembered", len(k.changes.latest))
		}
	})
}

// TestLeaveOut_WrongClock: changes of keys bear the time of the cluster, and the clock of this host is wrong.
func TestLeaveOut_WrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Second, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			cluster := func() time.Time { return time.Now().Add(-ahead) }
			k, log, _ := newKeys(t, func(c *Config) { c.Now = cluster })
			decide := func(id string, to state.KeyState) {
				t.Helper()
				apply(t, log, state.KeySet{ID: id, State: to, Pub: "pub-" + id, BaseRev: log.View().KeyRev(id),
					Audit: state.Audit{By: "m2", At: cluster().UnixMilli(), Cause: "test"}})
			}
			decide("web", state.KeyAccepted)
			decide("earlier", state.KeyAccepted)
			decide("earlier", state.KeyDeleted)
			time.Sleep(2 * clocksApart)
			published := time.Now()
			time.Sleep(time.Second)
			decide("web", state.KeyDeleted)
			if got := k.LeaveOut(nil, time.Since(published)); !slices.Equal(got, []string{"web"}) {
				t.Errorf("this host's clock is %s ahead: %q is left out", ahead, got)
			}
		})
	}
}

func TestKeys_TooFarBehind(t *testing.T) {
	k, log, _ := newKeys(t)
	for lacking, want := range map[time.Duration]bool{
		0: false, sidecar.BehindTolerated - 1: false, sidecar.BehindTolerated: true, time.Hour: true,
	} {
		if log.lacking = lacking; k.TooFarBehind() != want {
			t.Errorf("for %s: %v", lacking, !want)
		}
	}
}

func TestKeys_States(t *testing.T) {
	k, log, _ := newKeys(t)
	set(t, log, "web", state.KeyAccepted, "pub-web")
	set(t, log, "db", state.KeyPending, "pub-db")
	set(t, log, "old", state.KeyRejected, "pub-old")
	set(t, log, "gone", state.KeyAccepted, "pub-gone")
	set(t, log, "gone", state.KeyDeleted, "")
	for _, test := range []struct {
		id              string
		accepted, known bool
		knownWhenBehind bool
	}{
		{"web", true, true, true},
		{"db", false, true, true},
		{"old", false, true, true},
		{"gone", false, false, false},
		{"never", false, false, true}, // a node that lacks decisions removes nothing
	} {
		log.behind = false
		if pub, ok := k.Accepted(test.id); ok != test.accepted || ok && pub != "pub-"+test.id {
			t.Errorf("%s: accepted %v with %q", test.id, ok, pub)
		}
		if got := k.Known(test.id); got != test.known {
			t.Errorf("%s: known is %v", test.id, got)
		}
		if st := k.Standing(test.id); st.Accepted != test.accepted || st.Pending != (test.id == "db") ||
			st.Seen != log.View().Rev() {
			t.Errorf("%s: its standing is %+v", test.id, st)
		}
		log.behind = true
		if got := k.Known(test.id); got != test.knownWhenBehind {
			t.Errorf("%s: known to a node that is behind is %v", test.id, got)
		}
	}
	if got := k.IDs(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("accepted are %q", got)
	}
}

func TestKeys_Session(t *testing.T) {
	k, _, _ := newKeys(t)
	other, _, _ := newKeys(t)
	first := k.Session("web", "pub")
	if first.Text() != other.Session("web", "pub").Text() {
		t.Error("two nodes derive different session keys")
	}
	if first.Text() == k.Session("web", "another").Text() || first.Text() == k.Session("db", "pub").Text() {
		t.Error("two minions have one session key")
	}
	k.cfg.Seeds.Begin(epochs.Seed{Number: 2, Secret: []byte("second")}, epochs.Seed{Number: 1, Secret: []byte("first")},
		time.Hour)
	former := k.FormerSessions("web", "pub")
	if k.Generation() != 2 || k.Session("web", "pub").Text() == first.Text() || len(former) != 1 ||
		former[0].Text() != first.Text() {
		t.Errorf("generation %d, %d former keys", k.Generation(), len(former))
	}
}

func TestKeys_Accept(t *testing.T) {
	for _, test := range []struct {
		name    string
		before  func(t *testing.T, log *fakeLog) // after the sign-in was judged
		proposE error
		awaitE  error
		want    error
	}{
		{"decided", nil, nil, nil, nil},
		{"no leader", nil, consensus.ErrNoLeader, nil, signin.ErrNoQuorum},
		{"no answer in time", nil, context.DeadlineExceeded, nil, signin.ErrNoQuorum},
		{"the key directory was faster", func(t *testing.T, log *fakeLog) {
			set(t, log, "web", state.KeyAccepted, "pub")
		}, nil, nil, nil},
		{"that was not seen in time", func(t *testing.T, log *fakeLog) {
			set(t, log, "web", state.KeyAccepted, "another")
		}, nil, context.DeadlineExceeded, signin.ErrNoQuorum},
		{"another key was accepted", func(t *testing.T, log *fakeLog) {
			set(t, log, "web", state.KeyAccepted, "another")
		}, nil, nil, signin.ErrChanged},
		{"rejected meanwhile", func(t *testing.T, log *fakeLog) {
			set(t, log, "web", state.KeyRejected, "pub")
		}, nil, nil, signin.ErrChanged},
	} {
		k, log, _ := newKeys(t, func(c *Config) {
			c.AwaitRevision = func(context.Context, uint64) error { return test.awaitE }
		})
		st := k.Standing("web")
		if test.before != nil {
			test.before(t, log)
		}
		log.proposed = test.proposE
		if err := k.Accept(t.Context(), "web", "pub", st); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", test.name, err)
		}
		if _, ok := k.Accepted("web"); test.name == "decided" && !ok {
			t.Error("nothing was decided")
		}
	}
}

func TestKeys_CatchUp(t *testing.T) {
	fault := errors.New("fault")
	for _, test := range []struct {
		name           string
		barrier, epoch error
		want           error
	}{
		{"caught up", nil, nil, nil},
		{"behind", consensus.ErrBehind, nil, sidecar.ErrBehind},
		{"another failure", fault, nil, fault},
		{"the epoch cannot be put in force", nil, fault, fault},
	} {
		k, log, _ := newKeys(t, func(c *Config) { c.BeginEpoch = func(state.View) error { return test.epoch } })
		log.barrier = test.barrier
		if err := k.CatchUp(t.Context()); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A key that the master has no file of yet is waited for, but not while this node serves alone.
func TestKeys_OnDisk(t *testing.T) {
	alone := false
	k, log, dir := newKeys(t, func(c *Config) { c.Alone = func() bool { return alone } })
	dir.rev = log.View().Rev()
	set(t, log, "web", state.KeyAccepted, "pub")
	if k.OnDisk("db") != nil {
		t.Error("a key is waited for that nothing was decided about")
	}
	wait := k.OnDisk("web")
	if wait == nil {
		t.Fatal("a key that is not on disk yet is not waited for")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waited: %v", err)
	}
	dir.rev = log.View().Rev()
	if err := errors.Join(wait(t.Context()), k.Settled(t.Context())); err != nil || k.OnDisk("web") != nil {
		t.Errorf("on disk: %v", err)
	}
	dir.rev, alone = 0, true
	if err := k.Settled(t.Context()); k.OnDisk("web") != nil || !errors.Is(err, signin.ErrNoQuorum) {
		t.Errorf("alone: %v", err)
	}
}

func TestKeys_AwaitFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, log, dir := newKeys(t)
		dir.rev = 0
		reports := 0
		err := k.AwaitFiles(t.Context(), func(r catchup.Report) {
			if reports++; reports == 3 {
				dir.rev = log.View().Rev()
			}
			if r.Total != 100 {
				t.Errorf("report is %+v", r)
			}
		})
		if err != nil || reports != 3 {
			t.Errorf("%v after %d reports", err, reports)
		}
		dir.rev = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.AwaitFiles(ctx, func(catchup.Report) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an end: %v", err)
		}
	})
}

// Pending keys are counted once a second at most.
func TestKeys_NewcomerLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, log, _ := newKeys(t)
		limits := k.NewcomerLimits(config.SignIn{NewRate: 5, NewRatePerAddress: 2, MaxPendingKeys: 7})
		if limits.Rate != 5 || limits.PerAddress != 2 || limits.MaxPending != 7 || limits.Pending() != 0 {
			t.Errorf("limits are %+v", limits)
		}
		set(t, log, "web", state.KeyPending, "pub")
		set(t, log, "db", state.KeyAccepted, "pub")
		if n := limits.Pending(); n != 0 {
			t.Errorf("%d keys are pending: all were read again within a second", n)
		}
		time.Sleep(countEvery)
		if n := limits.Pending(); n != 1 {
			t.Errorf("%d keys are pending", n)
		}
		if !limits.Waiting("web") || limits.Waiting("db") || limits.Waiting("never") {
			t.Error("the wrong keys are pending")
		}
	})
}

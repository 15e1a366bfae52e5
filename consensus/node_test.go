package consensus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestBootstrapRestart(t *testing.T) {
	c := newCluster(t, func(cfg *Config) { cfg.Registerer = prometheus.NewRegistry() })
	n := c.start("m1")
	if n.HasState() || n.CaughtUp() || n.Status().Role != RoleNew {
		t.Fatalf("a new node: %+v", n.Status())
	}
	check.ErrorIs(t, n.Bootstrap(t.Context(), initFor("m2")), ErrInvalid, "somebody else as founder")
	require.NoError(t, n.Bootstrap(t.Context(), initFor("m1")))
	check.ErrorIs(t, n.Bootstrap(t.Context(), initFor("m1")), ErrBootstrapped, "second bootstrap")
	c.must(n, accept("web1"), accept("web2"))
	require.NoError(t, n.raft.Load().Snapshot().Error())
	r := c.must(n, state.KeySet{ID: "web2", BaseRev: n.View().KeyRev("web2")})[0]
	before := c.converge()
	s := n.Status()
	if s.Role != RoleLeader || !s.HasQuorum || !s.CaughtUp || s.Rev != r.Rev || len(s.Voters) != 1 {
		t.Errorf("%+v", s)
	}
	c.stop("m1")
	if _, err := n.Propose(t.Context(), accept("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("propose after close: %v", err)
	}
	checkRights(t, c.dirs+"/m1")

	n = c.start("m1")
	c.leader()
	if !n.HasState() || c.converge() != before {
		t.Error("the state is not what it was")
	}
	check.ErrorIs(t, n.Bootstrap(t.Context(), initFor("m1")), ErrBootstrapped, "bootstrap after restart")
	c.must(n, accept("web3"))
}

func checkRights(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		check.Equal(t, info.Mode().Perm(), want, path)
		return nil
	})
	if err != nil || files < 4 { // log, format, snapshot state and meta
		t.Errorf("%d files, %v", files, err)
	}
}

func TestTheDirectoryIsLocked(t *testing.T) {
	c := newCluster(t, nil)
	n := c.start("m1")
	other, err := New(n.cfg)
	require.NoError(t, err)
	if err := other.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("second open: %v", err)
	}
	check.NoError(t, other.Close(), "close of a node that did not open")
}

func TestThreeNodes(t *testing.T) {
	c := form(t, 3, nil)
	follower := c.follower()
	res := c.must(follower, accept("web1"), state.DeniedSet{ID: "web1", Pub: "EVIL"})
	k, ok := follower.View().Key("web1")
	if !ok || k.Rev != res[0].Rev || k.By != follower.cfg.ID || k.At == 0 {
		t.Errorf("a follower does not see its own proposal: %+v", k)
	}
	for _, n := range c.nodes {
		require.NoError(t, n.Barrier(t.Context()))
		if _, ok := n.View().Key("web1"); !ok {
			t.Errorf("%s passed the barrier without the key", n.cfg.ID)
		}
		s := n.Status()
		if !s.HasQuorum || s.Leader == "" || len(s.Voters) != 3 || s.Err != nil || s.LastContact < 0 {
			t.Errorf("%+v", s)
		}
	}
	// Many commands are cut into several requests, in order.
	var many []state.Command
	for i := range 3*requestCommands + 1 {
		many = append(many, accept(fmt.Sprintf("many%04d", i)))
	}
	res = c.must(follower, many...)
	if len(res) != len(many) || !slices.IsSortedFunc(res, func(a, b state.Result) int { return int(a.Rev) - int(b.Rev) }) {
		t.Errorf("%d results for %d commands", len(res), len(many))
	}
	c.converge()
	if _, err := follower.Propose(t.Context(), accept("../bad")); !errors.Is(err, ErrInvalid) {
		t.Errorf("invalid id: %v", err)
	}
	if _, err := follower.Propose(t.Context(), initFor("m1")); !errors.Is(err, ErrInvalid) {
		t.Errorf("init through Propose: %v", err)
	}
}

func TestWatch(t *testing.T) {
	c := form(t, 1, nil)
	n := c.nodes["m1"]
	ctx, cancel := context.WithCancel(t.Context())
	w := n.Watch(ctx)
	rev := c.must(n, accept("a"))[0].Rev
	<-w
	if n.View().Rev() < rev {
		t.Error("notified before the change could be seen")
	}
	for i := range 20 {
		c.must(n, accept(fmt.Sprint("b", i)))
	}
	<-w // twenty changes, one or two notifications
	cancel()
	closed := time.After(testTimeout)
	for {
		select {
		case _, ok := <-w:
			if ok {
				continue
			}
		case <-closed:
			t.Fatal("the channel is not closed")
		}
		break
	}
	after := n.Watch(t.Context())
	c.stop("m1")
	for range after { // ends because Close closes it
	}
}

func TestConflictSettlesOnOneWinner(t *testing.T) {
	c := form(t, 3, nil)
	for round := range 10 {
		id := fmt.Sprintf("web%d", round)
		type got struct {
			pub string
			r   state.Result
			err error
		}
		ch := make(chan got, 3)
		for _, n := range c.nodes {
			go func() {
				k := accept(id)
				k.Pub = string(n.cfg.ID)
				r, err := n.Propose(t.Context(), k)
				g := got{pub: k.Pub, err: err}
				if err == nil {
					g.r = r[0]
				}
				ch <- g
			}()
		}
		var winner string
		for range c.nodes {
			g := <-ch
			switch {
			case g.err != nil:
				t.Fatal(g.err)
			case g.r.Code == state.OK && winner == "":
				winner = g.pub
			case g.r.Code != state.Conflict:
				t.Fatalf("%s: %+v beside winner %q", g.pub, g.r, winner)
			}
		}
		c.converge()
		if k, _ := c.nodes["m2"].View().Key(id); k.Pub != winner || winner == "" {
			t.Fatalf("winner %q, key %+v", winner, k)
		}
	}
}

func TestRotateEpochIsCoalesced(t *testing.T) {
	c := form(t, 3, nil)
	for expect := uint64(1); expect < 4; expect++ {
		errs := make(chan error, 30)
		for i := range cap(errs) {
			n := c.nodes[[]*Node{c.nodes["m1"], c.nodes["m2"], c.nodes["m3"]}[i%3].cfg.ID]
			go func() {
				e, err := n.RotateEpoch(t.Context(), expect, "test", func() (state.Secret, error) {
					return epochKey(byte(10*int(expect) + i%3)), nil
				})
				if err == nil && e.N != expect+1 {
					err = fmt.Errorf("epoch %d in force, want %d", e.N, expect+1)
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
	}
	if _, err := c.nodes["m1"].RotateEpoch(t.Context(), 77, "test",
		func() (state.Secret, error) { return epochKey(9), nil }); !errors.Is(err, ErrInvalid) {
		t.Errorf("an epoch that does not exist: %v", err)
	}
	bad := errors.New("no randomness")
	if _, err := c.nodes["m1"].RotateEpoch(t.Context(), 4, "test",
		func() (state.Secret, error) { return state.Secret{}, bad }); !errors.Is(err, bad) {
		t.Errorf("no key: %v", err)
	}
}

// TestPropose_FollowersLearnAtOnce checks that followers learn of a decision that no other follows, although an idle
// leader repeats its commit index after an hour only.
func TestPropose_FollowersLearnAtOnce(t *testing.T) {
	c := form(t, 3, func(cfg *Config) { cfg.Timing.Commit = time.Hour })
	for i := range 3 {
		id := fmt.Sprint("web", i)
		c.must(c.leader(), accept(id))
		c.eventually(id+" is known everywhere", func() (bool, string) {
			for _, n := range c.nodes {
				if _, ok := n.View().Key(id); !ok {
					return false, string(n.cfg.ID)
				}
			}
			return true, ""
		})
	}
}

// A leader whose own clock is off by years neither dates decisions with it, nor forgets deletions by it.
func TestDatesOfTheCluster(t *testing.T) {
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC) // ago, so that this host's clock is the one that is off
	var later atomic.Int64                              // than that
	c := form(t, 1, func(cfg *Config) {
		cfg.Now = func() time.Time { return long.Add(time.Duration(later.Load())) }
	})
	n := c.leader("m1")
	r := c.must(n, accept("m"))
	if key, _ := n.View().Key("m"); key.At != long.UnixMilli() {
		t.Errorf("accepted at %s", time.UnixMilli(key.At))
	}
	c.must(n, state.KeySet{ID: "m", State: state.KeyDeleted, BaseRev: r[0].Rev})
	n.pruneOnce(t.Context())
	check.Equal(t, n.View().Tombstones(), 1, "the deletion is forgotten")
	later.Store(int64(n.cfg.TombstoneAge + time.Minute))
	n.pruneOnce(t.Context())
	check.Equal(t, n.View().Tombstones(), 0, "the deletion is remembered for longer than 180 days")
}

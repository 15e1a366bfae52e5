package consensus

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestMinorityRefusesWrites(t *testing.T) {
	c := form(t, 3, nil)
	old := c.leader()
	c.must(old, accept("before"))
	c.f.split(old.cfg.ID)
	var rest []node.ID
	for id := range c.nodes {
		if id != old.cfg.ID {
			rest = append(rest, id)
		}
	}
	next := c.leader(rest...)
	c.must(next, accept("after"))

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := old.Propose(ctx, accept("lost")); !errors.Is(err, ErrNoLeader) {
		t.Errorf("a write in the minority: %v", err)
	}
	check.ErrorIs(t, old.Barrier(ctx), ErrNoLeader, "a barrier in the minority")
	c.eventually("the minority knows what it is", func() (bool, string) {
		s := old.Status()
		return !s.HasQuorum && !s.CaughtUp && s.Role == RoleCandidate && s.LastContact > 0, fmt.Sprintf("%+v", s)
	})
	if _, ok := old.View().Key("before"); !ok {
		t.Error("the minority does not serve what it knows")
	}

	c.f.heal()
	c.eventually("the minority caught up", func() (bool, string) {
		_, ok := old.View().Key("after")
		return ok && old.CaughtUp(), fmt.Sprintf("%+v", old.Status())
	})
	// What it refused is not there, unless it said that it might be.
	if _, ok := old.View().Key("lost"); ok {
		t.Log("the uncertain write was applied after all")
	}
	c.converge()
}

func TestNoLeaderIsNotUncertain(t *testing.T) {
	c := form(t, 3, nil)
	f := c.follower()
	c.f.split(f.cfg.ID)
	c.eventually("no leader known", func() (bool, string) { return f.Leader() == "", "" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Propose(ctx, accept("x")); !errors.Is(err, ErrNoLeader) || errors.Is(err, ErrUncertain) {
		t.Errorf("nothing was sent anywhere: %v", err)
	}
}

// Proposals that are on their way while leaders die and answers get lost are
// applied exactly once: a second application would be a conflict, for their
// base is "no such key".
func TestPropose_OnceAcrossLeaders(t *testing.T) {
	c := form(t, 5, nil)
	c.f.drop(20)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	// m1..m5 lose two members; the writers sit on nodes that stay.
	first := c.leader()
	var writers []*Node
	for id, n := range c.nodes {
		if n != first && len(writers) < 3 {
			writers = append(writers, c.nodes[id])
		}
	}
	var wg sync.WaitGroup
	const each = 60
	for w, n := range writers {
		for lane := range 3 {
			wg.Go(func() {
				for i := range each / 3 {
					id := fmt.Sprintf("w%d-%d-%d", w, lane, i)
					r, err := n.Propose(ctx, accept(id))
					if err != nil || r[0].Code != state.OK {
						t.Errorf("%s: %+v, %v", id, r, err)
						return
					}
				}
			})
		}
	}
	keys := func(atLeast int) {
		c.eventually("writers go on", func() (bool, string) {
			n := writers[0].View().KeyCount()
			return n >= atLeast, fmt.Sprint(n)
		})
	}
	keys(20)
	c.stop(first.cfg.ID)
	keys(60)
	l := c.leader()
	if err := l.TransferLeadership(ctx, ""); err != nil {
		t.Logf("transfer: %v", err) // another election came first
	}
	keys(100)
	l = c.leader()
	c.f.split(l.cfg.ID)
	if !isWriter(writers, l) {
		keys(140)
	}
	c.f.heal()
	wg.Wait()
	c.converge()
	check.Equal(t, writers[0].View().KeyCount(), len(writers)*each, "keys")
	for k := range writers[0].View().Keys {
		if k.State != state.KeyAccepted || k.Pub != "PUB "+k.ID {
			t.Errorf("%+v", k)
		}
	}
}

func isWriter(ws []*Node, n *Node) bool {
	for _, w := range ws {
		if w == n {
			return true
		}
	}
	return false
}

func TestKillAndRestartAll(t *testing.T) {
	c := form(t, 3, nil)
	for i := range 20 {
		c.must(c.follower(), accept(fmt.Sprint("k", i)))
	}
	before := c.converge()
	ids := []node.ID{"m1", "m2", "m3"}
	for _, id := range ids {
		c.stop(id)
	}
	for _, id := range ids {
		c.start(id)
	}
	c.leader()
	c.eventually("all back", func() (bool, string) {
		for _, n := range c.nodes {
			if !n.CaughtUp() {
				return false, fmt.Sprintf("%+v", n.Status())
			}
		}
		return true, ""
	})
	check.Equal(t, c.converge(), before, "the state is not what it was")
	c.must(c.follower(), accept("more"))
}

func TestSnapshotReachesAFreshLearner(t *testing.T) {
	c := form(t, 1, func(cfg *Config) { cfg.Timing.TrailingLog = 1 })
	n := c.nodes["m1"]
	for i := range 50 {
		c.must(n, accept(fmt.Sprint("k", i)))
	}
	require.NoError(t, n.raft.Load().Snapshot().Error())
	first, err := n.store.bolt.FirstIndex()
	if err != nil || first < 40 {
		t.Fatalf("the log was not cut: first entry %d, %v", first, err)
	}
	c.start("m2")
	c.must(n, add("m2"))
	c.eventually("m2 votes", func() (bool, string) {
		s := c.nodes["m2"].Status()
		return s.CaughtUp && s.Role == RoleFollower, fmt.Sprintf("%+v", s)
	})
	c.converge()
	checkRights(t, filepath.Join(c.dirs, "m2"))
}

func TestRemovedNodeDetaches(t *testing.T) {
	c := form(t, 3, nil)
	gone := c.follower()
	c.must(c.leader(), state.MemberRemove{ID: gone.cfg.ID})
	c.eventually("it is detached", func() (bool, string) {
		s := gone.Status()
		return s.Role == RoleDetached && !s.CaughtUp && !s.HasQuorum, fmt.Sprintf("%+v", s)
	})
	c.eventually("two voters are left", func() (bool, string) {
		s := c.leader().Status()
		return len(s.Voters) == 2, fmt.Sprint(s.Voters)
	})
	// And it may come back.
	c.must(c.leader(), add(gone.cfg.ID))
	c.eventually("it votes again", func() (bool, string) {
		s := gone.Status()
		return s.CaughtUp && len(s.Voters) == 3, fmt.Sprintf("%+v", s)
	})
}

func TestRemovedLeaderHandsOver(t *testing.T) {
	c := form(t, 3, nil)
	old := c.leader()
	c.must(old, state.MemberRemove{ID: old.cfg.ID})
	c.eventually("the old leader is out", func() (bool, string) {
		for _, n := range c.nodes {
			if n != old && n.Serving() {
				return len(n.Status().Voters) == 2 && old.Status().Role == RoleDetached, fmt.Sprintf("%+v %+v", n.Status(),
					old.Status())
			}
		}
		return false, "no new leader"
	})
}

func TestNonVoterAndVoterLimit(t *testing.T) {
	c := form(t, 1, func(cfg *Config) { cfg.MaxVoters = 2 })
	m2 := add("m2")
	m2.NonVoter = true
	c.start("m2")
	c.start("m3")
	c.start("m4")
	c.must(c.nodes["m1"], m2, add("m3"), add("m4"))
	c.eventually("two vote, two learn", func() (bool, string) {
		s := c.leader().Status()
		return len(s.Voters) == 2 && len(s.Learners) == 2, fmt.Sprintf("%+v", s)
	})
	check.Equal(t, c.nodes["m2"].Status().Role, RoleLearner, "m2")
	// The voter that leaves is replaced by the learner in reserve.
	voter := c.leader().Status().Voters[1]
	if voter == c.leader().cfg.ID {
		voter = c.leader().Status().Voters[0]
	}
	no := true
	c.must(c.nodes["m2"], state.MemberSet{ID: voter, NonVoter: &no})
	c.eventually("the reserve votes", func() (bool, string) {
		s := c.leader().Status()
		for _, id := range s.Voters {
			if id == voter || id == "m2" {
				return false, fmt.Sprint(s.Voters)
			}
		}
		return len(s.Voters) == 2, fmt.Sprint(s.Voters)
	})
}

func TestUnknownEntryStopsTheNode(t *testing.T) {
	c := form(t, 1, nil)
	n := c.nodes["m1"]
	before := n.View().Rev()
	n.raft.Load().Apply([]byte(`{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"tree.advance","d":{}}]}]}`), time.Second)
	<-n.Done()
	check.ErrorIs(t, n.Err(), state.ErrUnsupported)
	if err := n.raft.Load().Snapshot().Error(); err == nil {
		t.Error("a state with a hole was written into a snapshot")
	}
	if _, err := n.Propose(t.Context(), accept("x")); !errors.Is(err, ErrClosed) || !errors.Is(err, state.ErrUnsupported) {
		t.Errorf("propose: %v", err)
	}
	if n.View().Rev() != before || n.CaughtUp() || n.Status().Role != RoleStopped {
		t.Errorf("%+v", n.Status())
	}
	delete(c.nodes, "m1")
	check.ErrorIs(t, n.Close(), state.ErrUnsupported, "close")
}

func TestMalformedEntryIsSkipped(t *testing.T) {
	c := form(t, 1, nil)
	n := c.nodes["m1"]
	f := n.raft.Load().Apply([]byte(`garbage`), time.Second)
	require.NoError(t, f.Error())
	if err, _ := f.Response().(error); !errors.Is(err, state.ErrMalformed) {
		t.Errorf("%v", f.Response())
	}
	c.must(n, accept("x"))
}

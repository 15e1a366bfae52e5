package consensus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// Who is off the roster is not heard any more, and votes until raft has removed him: of several removals that come
// together each waits for the one before, so that the rest can go on deciding.
func TestMemberRemove_OneAtATime(t *testing.T) {
	c := form(t, 5, nil)
	l := c.leader()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	ids := slices.Collect(maps.Keys(c.nodes))
	var cutting, wg sync.WaitGroup
	defer cutting.Wait()
	defer cancel()
	cutting.Go(func() { // as the peer port does with a certificate that is worth nothing
		for gone := map[node.ID]bool{}; wait(ctx, time.Millisecond); {
			for _, id := range ids {
				if _, ok := l.View().Member(id); !ok && !gone[id] {
					gone[id] = true
					c.f.split(id)
				}
			}
		}
	})
	refusals := make(chan string, 1000)
	for _, id := range ids {
		if id == l.cfg.ID || id == other(c, l) {
			continue
		}
		wg.Go(func() {
			for {
				results, err := l.Propose(ctx, state.MemberRemove{ID: id})
				if err != nil {
					t.Errorf("remove %s: %v", id, err)
					return
				}
				if results[0].Code == state.OK {
					return
				}
				if !state.IsConflict(results[0].Err()) {
					t.Errorf("remove %s: %+v", id, results[0])
					return
				}
				refusals <- results[0].Message
				wait(ctx, 5*time.Millisecond)
			}
		})
	}
	wg.Wait()
	close(refusals)
	said := 0
	for s := range refusals {
		said++
		if !strings.Contains(s, "remove one node at a time") {
			t.Error(s)
		}
	}
	if said == 0 {
		t.Error("all were let into the log at once")
	}
	c.eventually("two are left and decide", func() (bool, string) {
		s := l.Status()
		return len(s.Voters) == 2 && s.HasQuorum, fmt.Sprintf("%+v", s)
	})
	c.must(l, accept("after"))
}

// other is the member that stays beside the leader.
func other(c *cluster, l *Node) node.ID {
	for _, id := range []node.ID{"m1", "m2"} {
		if id != l.cfg.ID {
			return id
		}
	}
	return ""
}

// A removal whose first attempt was applied without an answer is found again, though the vote is still there.
func TestMemberRemove_RetryWhileVoter(t *testing.T) {
	var silent atomic.Bool // the leader waits for the removed one to know, before it takes the vote
	c := form(t, 3, func(cfg *Config) {
		stats := cfg.Stats
		cfg.Stats = func(ctx context.Context, id node.ID) (PeerStats, error) {
			if silent.Load() {
				return PeerStats{}, nil
			}
			return stats(ctx, id)
		}
	})
	l := c.leader()
	gone := other(c, l)
	silent.Store(true)
	req := state.Request{ID: l.ids.nextID(), Since: l.View().Seq(),
		Commands: []state.Command{state.Stamp(state.MemberRemove{ID: gone}, state.Audit{By: l.cfg.ID, At: 1}, 0)}}
	for i := range 2 {
		req.Retry = i > 0
		o, fail := l.batch.submitRequest(t.Context(), req, 100)
		if fail != nil || o.results[0].Code != state.OK {
			t.Fatalf("attempt %d: %+v, %v", i, o, fail)
		}
	}
	if voters := l.Status().Voters; len(voters) != 3 {
		t.Errorf("%s has no vote any more: %q", gone, voters)
	}
}

// What a removed node must not know is not decided while raft still sends it the log, whoever asks for it: else the
// secret would be newer than the removal and known to the node all the same, and nobody would replace it any more.
func TestSecretsWaitForARemoval(t *testing.T) {
	var silent atomic.Bool // the leader waits for the removed one to know, before it takes the vote
	c := form(t, 3, func(cfg *Config) {
		stats := cfg.Stats
		cfg.Stats = func(ctx context.Context, id node.ID) (PeerStats, error) {
			if silent.Load() {
				return PeerStats{}, nil
			}
			return stats(ctx, id)
		}
		cfg.Timing.Attempt = testTimeout
	})
	l := c.leader()
	gone, stays := other(c, l), c.nodes["m3"]
	if l.cfg.ID == "m3" {
		gone, stays = "m1", c.nodes["m2"]
	}
	c.must(l, state.LevelSet{Level: state.LevelSeeds})
	first := l.View().Seeds().Current
	silent.Store(true)
	gossip := state.GossipKeyAdd{Expect: 1, Key: state.SecretText(strings.Repeat("n", 32))}
	seed := state.SeedRotate{Expect: 1, Key: epochKey(2), Seed: state.SecretText(strings.Repeat("n", 32))}
	results, err := l.Propose(t.Context(), state.MemberRemove{ID: gone}, seed)
	if err != nil || !state.IsConflict(results[1].Err()) {
		t.Fatalf("removal and secret in one request: %+v, %v", results, err)
	}
	c.must(l, state.MemberRemove{ID: gone})
	rotate := func(n *Node) state.View {
		t.Helper()
		now := n.View().Epochs().Current.N
		if _, err := n.RotateEpoch(t.Context(), now, "test",
			func() (state.Secret, error) { return epochKey(byte(10 + now)), nil }); err != nil {
			t.Fatal(err)
		}
		return n.View()
	}
	for _, n := range []*Node{l, stays} {
		if v := rotate(n); !v.SeedDue() || !v.Seeds().Current.Key.Equal(first.Key) {
			t.Errorf("%s, while the removed node gets the log: seed %d, due %v", n.cfg.ID, v.Seeds().Current.N, v.SeedDue())
		}
		if results, err := n.Propose(t.Context(), gossip); err != nil || !state.IsConflict(results[0].Err()) ||
			!n.View().GossipDue() {
			t.Errorf("%s, gossip key: %+v, %v", n.cfg.ID, results, err)
		}
	}
	silent.Store(false)
	c.eventually("its vote is gone", func() (bool, string) {
		s := l.Status()
		return len(s.Voters) == 2, fmt.Sprintf("%+v", s)
	})
	if v := rotate(stays); v.SeedDue() || v.Seeds().Current.Key.Equal(first.Key) {
		t.Errorf("afterwards: seed %d, due %v", v.Seeds().Current.N, v.SeedDue())
	}
	c.must(l, gossip)
	if v := c.nodes[gone].View(); !v.Seeds().Current.Key.Equal(first.Key) || len(v.GossipKeys()) != 1 {
		t.Errorf("the removed node was told: seed %d, %d gossip keys", v.Seeds().Current.N, len(v.GossipKeys()))
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

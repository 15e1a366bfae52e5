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

// Who is off the roster is not heard any more, and votes until raft has removed him: of several removals that come together each
// waits for the one before, so that the rest can go on deciding.
func TestRemovalsComeOneAfterTheOther(t *testing.T) {
	c := form(t, 5, nil)
	l := c.leader()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		if !strings.Contains(s, "one after the other") {
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
func TestARemovalIsRepeatedWhileTheVoteIsThere(t *testing.T) {
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
	req := state.Request{ID: l.ids.next(), Since: l.View().Seq(), Commands: []state.Command{state.Stamp(state.MemberRemove{ID: gone}, state.Audit{By: l.cfg.ID, At: 1}, 0)}}
	for i := range 2 {
		req.Retry = i > 0
		o, fail := l.batch.submit(t.Context(), req, 100)
		if fail != nil || o.results[0].Code != state.OK {
			t.Fatalf("attempt %d: %+v, %v", i, o, fail)
		}
	}
	if voters := l.Status().Voters; len(voters) != 3 {
		t.Errorf("%s has no vote any more: %q", gone, voters)
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

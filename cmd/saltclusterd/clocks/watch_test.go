package clocks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
)

type viewOf struct{ s *state.State }

func (v viewOf) View() state.View { return v.s.View() }

// membersOf returns a log with these members.
func membersOf(t *testing.T, ids ...node.ID) viewOf {
	t.Helper()
	s := state.New()
	cmds := []state.Command{state.Init{
		Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     state.Member{ID: ids[0], Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
		EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		GossipKey:   state.SecretText(strings.Repeat("g", 32)),
	}}
	for i, id := range ids[1:] {
		cmds = append(cmds, state.MemberAdd{
			ID: id, Addr: fmt.Sprintf("10.0.0.%d:4520", i+2), Fingerprint: strings.Repeat(string(rune('b'+i)), 64), Weight: 100,
		})
	}
	for _, r := range s.ApplyCommands(cmds...) {
		require.NoError(t, r.Err())
	}
	return viewOf{s}
}

// sinceStart is a clock of the bubble that calls it.
func sinceStart() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

func TestWatch_JudgesClocks(t *testing.T) {
	silent := errors.New("no answer")
	for _, c := range []struct {
		name    string
		others  map[node.ID]time.Duration // how far their clocks are ahead of this host's; missing: no answer
		level   health.Level
		reason  string
		problem string
		fresh   bool // the clock of b was read
	}{
		{"all agree", map[node.ID]time.Duration{"b": time.Second, "c": -time.Second}, health.OK, "", "", true},
		{
			"this one is behind", map[node.ID]time.Duration{"b": 2 * time.Minute, "c": 2 * time.Minute},
			health.Warn, "2m0s behind the cluster's", "", true,
		},
		{
			"this one is far ahead", map[node.ID]time.Duration{"b": -25 * time.Minute, "c": -25 * time.Minute},
			health.Fail, "25m0s ahead of the cluster's", "", true,
		},
		{
			"another one is behind", map[node.ID]time.Duration{"b": -2 * time.Minute, "c": 0},
			health.OK, "", "warn b: the clock of its host is 2m0s behind the cluster's", true,
		},
		{
			"two that differ", map[node.ID]time.Duration{"b": 25 * time.Minute},
			health.Warn, "of a, b is 25m0s ahead", "", true,
		},
		{"no answer", nil, health.OK, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var serials atomic.Int32
				w := NewWatch(Config{
					Self: "a", Log: membersOf(t, "a", "b", "c"), Wall: time.Now, Elapsed: sinceStart(), Interval: Interval,
					Logger:  slog.New(slog.DiscardHandler),
					Observe: func(hlc.Timestamp) error { serials.Add(1); return nil },
					Read: func(_ context.Context, id node.ID) (Reading, error) {
						ahead, ok := c.others[id]
						if !ok {
							return Reading{}, silent
						}
						return Reading{Wall: time.Now().Add(ahead), Serial: 7}, nil
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { w.Run(ctx); close(ended) }()
				synctest.Wait()
				got := w.Check()
				if got.Level != c.level || !strings.Contains(got.Reason, c.reason) || (got.Reason == "") != (c.reason == "") {
					t.Errorf("check says %+v", got)
				}
				var problems []string
				for _, p := range w.Problems() {
					problems = append(problems, string(p.Level)+" "+p.Node+": "+p.Message)
				}
				if text := strings.Join(problems, "; "); text != c.problem {
					t.Errorf("problems are %q", text)
				}
				if w.IsFresh("b") != c.fresh {
					t.Errorf("the clock of b was read: %t", !c.fresh)
				}
				if n := int(serials.Load()); n != len(c.others) {
					t.Errorf("%d serials were observed", n)
				}
				if n := testutil.ToFloat64(w.reads); n != 1 {
					t.Errorf("the clocks were read %v times", n)
				}
				cancel()
				<-ended
				time.Sleep(maxAge + time.Second)
				if w.IsFresh("b") || w.Check().Level != health.OK {
					t.Error("an old answer is judged")
				}
			})
		})
	}
}

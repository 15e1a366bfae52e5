package daemon

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
)

// clocked is a node whose host's clock can be set.
type clocked struct {
	*testNode
	skew *atomic.Int64
}

func startClocked(t *testing.T, id string) clocked {
	t.Helper()
	c := clocked{startNode(t, id, t.TempDir()), &atomic.Int64{}}
	c.clockInterval = 100 * time.Millisecond
	c.wall = func() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }
	return c
}

func clockedCluster(t *testing.T, ids ...string) (nodes []clocked) {
	t.Helper()
	for _, id := range ids {
		nodes = append(nodes, startClocked(t, id))
	}
	if _, err := nodes[0].Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		if _, err := n.Join(t.Context(), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true, Timeout: longest},
			quiet); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// clockProblemsOf are the lines of a node's status that are about clocks.
func clockProblemsOf(t *testing.T, n clocked) (lines []string) {
	t.Helper()
	st, err := n.Status(t.Context())
	require.NoError(t, err)
	for _, p := range st.Problems {
		if strings.Contains(p.Message, "clock") {
			lines = append(lines, fmt.Sprintf("%s %s: %s", p.Level, p.Node, p.Message))
		}
	}
	return lines
}

// The status of every node names the node whose clock is off, and no other, and its serials go by the others' clocks.
func TestStatus_ClockSkew(t *testing.T) {
	t.Parallel()
	nodes := clockedCluster(t, "a", "b", "c")
	b := nodes[1]
	named := func(level, text string) func() error {
		return func() error {
			for _, n := range nodes {
				got := clockProblemsOf(t, n)
				if level == "" && len(got) == 0 {
					continue
				}
				if len(got) != 1 || level == "" || !strings.HasPrefix(got[0], level+" b: ") || !strings.Contains(got[0], text) {
					return fmt.Errorf("%s says %q", n.id, got)
				}
			}
			return nil
		}
	}
	eventually(t, "no problem with clocks", named("", ""))
	for _, c := range []struct {
		skew        time.Duration
		level, text string
	}{
		{10*time.Minute - 5*time.Second, "warn", " ahead of the cluster's"},
		{25 * time.Minute, "fail", "25m0s ahead of the cluster's"},
		{-25 * time.Minute, "fail", "25m0s behind the cluster's"},
		{-2 * time.Minute, "warn", "2m0s behind the cluster's"},
		{100 * 365 * 24 * time.Hour, "fail", " ahead of the cluster's"},
	} {
		b.skew.Store(int64(c.skew))
		eventually(t, fmt.Sprintf("b %s off", c.skew), named(c.level, c.text))
		if at := b.tenure.Current().service().serials.Now().Time(); time.Until(at).Abs() > 2*time.Minute {
			t.Errorf("clock %s off: b stamps serials of %s", c.skew, at)
		}
		if at := time.UnixMilli(b.tenure.Current().Audit("test").At); time.Until(at).Abs() > 2*time.Minute {
			t.Errorf("clock %s off: b dates decisions with %s", c.skew, at)
		}
		b.skew.Store(0)
		eventually(t, fmt.Sprintf("b right again after %s", c.skew), named("", ""))
	}

	// A serial from the future reaches all, and is followed.
	svc := b.tenure.Current().service()
	require.NoError(t, svc.serials.Observe(hlc.At(time.Now().Add(25*time.Minute))))
	seen := svc.serials.Now()
	for _, n := range []clocked{nodes[0], nodes[2]} {
		eventually(t, "serials in step", func() error {
			if got := n.tenure.Current().service().serials.Now(); got <= seen {
				return fmt.Errorf("%s stamps %d, and b's minions have seen %d", n.id, got, seen)
			}
			return nil
		})
	}
	eventually(t, "serials that are ahead are no problem of clocks", named("", ""))
}

// With two nodes nobody can tell whose clock is wrong: both say how they differ, and nothing is failing.
func TestTwoClocksThatDiffer(t *testing.T) {
	t.Parallel()
	nodes := clockedCluster(t, "a", "b")
	nodes[1].skew.Store(int64(25 * time.Minute))
	for _, n := range nodes {
		eventually(t, "both named", func() error {
			got := clockProblemsOf(t, n)
			if len(got) != 1 || !strings.HasPrefix(got[0], "warn "+string(n.id)) ||
				!strings.Contains(got[0], "of a, b is 25m0s ahead") {
				return fmt.Errorf("%s says %q", n.id, got)
			}
			return nil
		})
	}
	if at := nodes[1].tenure.Current().service().serials.Now().Time(); time.Until(at) > 2*time.Minute {
		t.Errorf("b stamps serials of %s", at)
	}
}

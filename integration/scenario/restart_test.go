//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// pinging publishes test.ping from the node over and over until stop is called, which returns how many rounds there
// were and what went wrong.
func pinging(ctx context.Context, n *lab.Node, ids []string) (stop func() (rounds int, failures []string)) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		rounds   int
		failures []string
	}
	done := make(chan result, 1)
	go func() {
		var r result
		for ctx.Err() == nil {
			got, err := n.Master.Pub(ctx, "*", "test.ping")
			if err == nil {
				err = lab.AnsweredBy(got, ids...)
			}
			if ctx.Err() != nil {
				break
			}
			if r.rounds++; err != nil {
				r.failures = append(r.failures, fmt.Sprintf("round %d: %v", r.rounds, err))
			}
		}
		done <- r
	}()
	return func() (int, []string) {
		cancel()
		r := <-done
		return r.rounds, r.failures
	}
}

func testMasterRestart(t *testing.T, c *lab.Cluster) {
	testMasterGone(t, c, func(m *lab.Master) error { return m.Stop(t.Context()) })
}

func testMasterKilled(t *testing.T, c *lab.Cluster) {
	testMasterGone(t, c, func(m *lab.Master) error { return m.Kill() })
}

// While a salt-master is away its node goes on serving minions: nobody notices, no minion signs in again.
func testMasterGone(t *testing.T, c *lab.Cluster, end func(*lab.Master) error) {
	ctx := t.Context()
	marks := logSizes(t, c)
	stop := pinging(ctx, c.Nodes[0], c.IDs())
	gone := c.Nodes[1]
	labtest.Must(t, end(gone.Master))
	for range 3 {
		got, err := c.Nodes[2].Master.Pub(ctx, "*", "pillar.items")
		labtest.Must(t, err)
		if err := lab.AnsweredBy(got, c.IDs()...); err != nil {
			t.Errorf("pillar.items from %s: %v", c.Nodes[2].Name, err)
		}
	}
	labtest.Must(t, gone.Master.Start(ctx))
	labtest.Must(t, gone.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, c.Answering(ctx, gone))
	rounds, failures := stop()
	t.Logf("%d rounds of test.ping from %s", rounds, c.Nodes[0].Name)
	if len(failures) > 0 {
		t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
	}
	for _, m := range c.Minions {
		for _, sign := range []string{"Authentication", "re-auth", "SaltReqTimeoutError", "Minion failed to auth"} {
			if strings.Contains(since(t, m, marks[m.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", m.ID, sign)
			}
		}
	}
}

func logSizes(t *testing.T, c *lab.Cluster) map[string]int64 {
	marks := map[string]int64{}
	for _, m := range c.Minions {
		fi, err := os.Stat(m.LogPath())
		labtest.Must(t, err)
		marks[m.ID] = fi.Size()
	}
	return marks
}

func since(t *testing.T, m *lab.Minion, mark int64) string {
	raw, err := os.ReadFile(m.LogPath())
	labtest.Must(t, err)
	return string(raw[min(mark, int64(len(raw))):])
}

// A node's saltclusterd dies: its minions move to the others within seconds. Salt on that host reaches none of them, and
// says why. It comes back and the cluster is whole.
func testDaemonKilled(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	dead := c.Nodes[2]
	// A key deleted just before made all sign in again; a 3008 minion cut in the middle of that may never hear anything
	// any more, from a stock master neither.
	labtest.Must(t, c.Answering(ctx, dead))
	labtest.Must(t, dead.Daemon.Kill())
	for _, n := range c.Nodes[:2] {
		labtest.Must(t, c.Answering(ctx, n))
		if _, err := n.Daemon.Members(ctx); err != nil {
			t.Errorf("members on %s: %v", n.Name, err)
		}
	}
	deadDaemonIsFound(t, dead, c.Nodes[0])
	labtest.Must(t, dead.Daemon.Start(ctx))
	labtest.Must(t, dead.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, c.Answering(ctx, dead))
	says(t, dead.Daemon, []string{"not:not reachable"}, "doctor", "--explain", noResponse)
}

// A node loses the network for a while: the others decide about keys, and it has the keys that it knew. When it is back
// it has what was accepted and what was deleted. TestBehind measures how soon.
func testIsolated(t *testing.T, c *lab.Cluster) {
	labtest.NeedNetwork(t, c.Lab)
	ctx := t.Context()
	lost := c.Nodes[1]
	const doomed = "deleted-meanwhile"
	moveKey(t, c.Nodes[0], doomed, publicKey(t), "", "minions")
	keyIs(t, c, doomed, "minions", time.Minute)
	late, err := c.Minions[0].Host().NewMinion(lab.Versions[2], "latecomer", c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, c.Lab.Isolate(ctx, lost.Host))
	for _, n := range []*lab.Node{c.Nodes[0], c.Nodes[2]} {
		labtest.Must(t, c.Answering(ctx, n))
	}
	labtest.Must(t, late.Start(ctx))
	defer func() { _ = late.Kill() }()
	labtest.Must(t, c.Nodes[0].Master.AcceptKeys(ctx, 2*time.Minute, late.ID))
	deleted(t, c.Nodes[2], doomed)
	if got := lost.Master.KeyState(doomed); got != "minions" {
		t.Errorf("%s is cut off, and the key %s is %q there", lost.Name, doomed, got)
	}
	labtest.Must(t, c.Lab.Heal(ctx))
	keyIs(t, c, late.ID, "minions", time.Minute)
	keyIs(t, c, doomed, "", time.Minute)
	labtest.Must(t, late.Stop(ctx))
	// never held, whatever the steps before have deleted within the minute
	must(t, lost.Daemon, "keys", "delete", "--yes", late.ID)
	keyIs(t, c, late.ID, "", 30*time.Second)
	labtest.Must(t, c.Answering(ctx, lost))
}

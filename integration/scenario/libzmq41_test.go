//go:build integration

package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// TestLibzmq41: stock minions of three versions with libzmq 4.1, which speaks ZMTP 3.0 and knows no PING, behind a load
// balancer that cuts connections after 30 s of silence. They keep their connections, work as others do, and move when
// their node is drained or killed. "make test-libzmq41".
func TestLibzmq41(t *testing.T) {
	lib := os.Getenv("SALTCLUSTER_LIBZMQ41")
	if lib == "" {
		t.Skip("libzmq 4.1 has to be fetched: make test-libzmq41")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MasterSettings: clusterMasters,
		DaemonSettings: lab.Settings{"health_trusted": []string{"0.0.0.0/0"}, "drain_announce": "4s", "drain_time": "3s"},
		LB:             lab.LBOptions{Idle: 30 * time.Second},
	})
	labtest.Must(t, err)
	for _, m := range c.Minions {
		m.Process.Env = append(m.Process.Env, "LD_PRELOAD="+lib)
	}
	labtest.Must(t, c.Up(ctx))
	for _, m := range c.Minions {
		got, err := c.Nodes[0].Master.Pub(ctx, m.ID, "cmd.run", "grep -c "+lib+" /proc/$PPID/maps", inShell)
		labtest.Must(t, err)
		if n, _ := got[m.ID].(string); n == "" || n == "0" {
			t.Fatalf("%s has not loaded %s: %v", m.ID, lib, got)
		}
	}
	for _, step := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"idle connections", func(t *testing.T, c *lab.Cluster) { keepIdle(t, c, 2*time.Minute) }},
		{"work", testLibzmq41Works},
		{"drain", testDrain},
		{"stop", testGentleStop},
		{"a node is killed", testLibzmq41Killed},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, c) }) {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	}
}

func testLibzmq41Works(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for _, n := range c.Nodes {
		inCache(t, c, n, async(t, n, "test.arg", "one"), time.Minute)
		got, err := n.Master.Pub(ctx, "*", "state.apply,cp.hash_file", "demo", ",",
			"salt://demo/init.sls")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		for id, ret := range got {
			if s := fmt.Sprint(ret); strings.Contains(s, "result:false") || !strings.Contains(s, "hsum") {
				t.Errorf("%s: %s answers %s", n.Name, id, s)
			}
		}
	}
	deleted(t, c.Nodes[1], c.Minions[0].ID) // another AES key: all sign in anew
	keyIs(t, c, c.Minions[0].ID, "minions_pre", time.Minute)
	labtest.Must(t, c.Nodes[2].Master.AcceptKeys(ctx, time.Minute, c.Minions[0].ID))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
}

func testLibzmq41Killed(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Kill())
		for _, other := range c.Nodes {
			if other != n {
				labtest.Must(t, c.Answering(ctx, other))
			}
		}
		labtest.Must(t, n.Daemon.Start(ctx))
		labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
		labtest.Must(t, c.Answering(ctx, n))
	}
}

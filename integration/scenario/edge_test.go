//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/zmtp"
)

// TestEdge is what stands between a minion and a node that minds its load balancer: an impatient HAProxy with PROXY
// headers, drains, a salt-master that stands still or changes its version.
func TestEdge(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	lb, err := l.Host(t.Context(), "lb") // first: its address is part of the nodes' configuration
	labtest.Must(t, err)
	renders := filepath.Join(t.TempDir(), "renders")
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{"3008.3", "3006.28"}, Minions: lab.Versions,
		MasterSettings: withPillars(lab.Settings{"timeout": 5, "gather_job_timeout": 15}, renders, slowForEdge),
		DaemonSettings: lab.Settings{
			"health_trusted": []string{"0.0.0.0/0"}, "proxy_protocol": true, "proxy_protocol_trusted": []string{lb.Addr},
			"heartbeat_interval": "1500ms", "heartbeat_timeout": "3s", "drain_announce": "4s", "drain_time": "3s",
			"master_stuck_after": "6s", "cluster_wall": wallEnforced,
		},
		LB: lab.LBOptions{SendProxy: "send-proxy-v2", SendReq: "send-proxy", Idle: 5 * time.Second},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	minding := newLegal(c)
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"idle connections", testIdle},
		{"true addresses", testTrueAddresses},
		{"drain", testDrain},
		{"stop", testGentleStop},
		{"half-open subscribers", testHalfOpen},
		{"a master is paused", testMasterPaused},
		{"a master's workers hang", testWorkersHang},
		{"a master changes its version", testVersionChange},
		// the last one: it leaves keys of minions that are not there
		{"pillars that are cached, and slow ones", func(t *testing.T, c *lab.Cluster) { testPillarsBriefly(t, c, renders) }},
	} {
		if ok := t.Run(s.name, func(t *testing.T) { s.test(t, c) }); !ok {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
		minding.check(t, s.name, false)
	}
}

// metricSum adds up a node's metric, of all its series that have each of the given labels.
func metricSum(t *testing.T, n *lab.Node, name string, labels ...string) float64 {
	t.Helper()
	return metric(t, n, func(line string) bool {
		rest, ok := strings.CutPrefix(line, name)
		ok = ok && (rest[0] == '{' || rest[0] == ' ')
		for _, l := range labels {
			ok = ok && strings.Contains(rest, l)
		}
		return ok
	})
}

// pubAccepted counts the publish connections that were ever let in.
func pubAccepted(t *testing.T, c *lab.Cluster) (n float64) {
	for _, node := range c.Nodes {
		n += metricSum(t, node, "saltcluster_edge_accepted_connections_total", `edge="pub"`)
	}
	return n
}

// subscribers by node.
func subscribers(t *testing.T, c *lab.Cluster) map[string]float64 {
	out := map[string]float64{}
	for _, n := range c.Nodes {
		out[n.Name] = metricSum(t, n, "saltcluster_edge_subscribers", `edge="pub"`)
	}
	return out
}

// idleFor is four times what the load balancer tolerates.
const idleFor = 20 * time.Second

// A publish connection on which nothing happens outlives the load balancer's timeout, and a request that comes after
// the load balancer has cut the minion's idle request connection is answered as any other.
func testIdle(t *testing.T, c *lab.Cluster) {
	keepIdle(t, c, idleFor)
}

func keepIdle(t *testing.T, c *lab.Cluster, idle time.Duration) {
	ctx := t.Context()
	labtest.Must(t, c.Answering(ctx, c.Nodes[0]))
	old := oldSubscriber(t, c)
	before, marks := pubAccepted(t, c), logSizes(t, c)
	select {
	case <-time.After(idle): // nothing is to happen: there is nothing to wait for
	case <-ctx.Done():
	}
	if after := pubAccepted(t, c); after != before {
		t.Errorf("%v publish connections were made anew in %s of silence", after-before, idle)
	}
	for _, n := range c.Nodes {
		got, err := n.Master.Pub(ctx, "*", "pillar.items")
		labtest.Must(t, err)
		check.NoError(t, lab.AnsweredBy(got, c.IDs()...), "after the silence")
	}
	quietLogs(t, c, marks)
	labtest.Must(t, old.SetReadDeadline(time.Now().Add(time.Second)))
	if _, err := io.Copy(io.Discard, old); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a subscriber that knows no PING was cut in %s of silence: %v", idle, err)
	}
}

// oldSubscriber subscribes through the load balancer as libzmq before 4.2 does, whose ZMTP 3.0 knows no PING.
func oldSubscriber(t *testing.T, c *lab.Cluster) net.Conn {
	t.Helper()
	conn, err := c.Minions[0].Host().Dial(t.Context(), "tcp", net.JoinHostPort(c.LB.Host().Addr, "4505"))
	labtest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	greeting := zmtp.AppendGreeting(nil)
	greeting[11] = 0 // its minor version
	_, err = conn.Write(zmtp.AppendSubscription(zmtp.AppendReady(greeting, "SUB", ""), nil, true))
	labtest.Must(t, err)
	var first [1]byte // the node has answered: it is let in
	_, err = conn.Read(first[:])
	labtest.Must(t, err)
	return conn
}

// quietLogs wants no minion to have signed in again, or waited in vain, since the marks.
func quietLogs(t *testing.T, c *lab.Cluster, marks map[string]int64) {
	t.Helper()
	for _, m := range c.Minions {
		for _, sign := range []string{"Authentication", "re-auth", "SaltReqTimeoutError", "Minion failed to auth"} {
			if strings.Contains(since(t, m, marks[m.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", m.ID, sign)
			}
		}
	}
}

// Behind a load balancer that says for whom it connects, the nodes know the minions' own addresses; who says so without
// being the load balancer is not believed.
func testTrueAddresses(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	minions, lb := c.Minions[0].Host(), c.LB.Host()
	if c.Lab.Namespaces() {
		for _, m := range c.Minions {
			labtest.Must(t, knownInFull(ctx, c.Nodes[0], m, m.Host().Addr, ""))
		}
	}
	rubbish := func(from *lab.Host, to, say string) {
		conn, err := from.Dial(ctx, "tcp", to)
		labtest.Must(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = io.WriteString(conn, say+strings.Repeat("not zmtp ", 20))
		labtest.Must(t, err)
		_, _ = io.Copy(io.Discard, conn) // until it is cut
	}
	logged := func(reason, remote string) (times int) {
		line := regexp.MustCompile(`connection cut.*reason=` + reason + ` remote=` + regexp.QuoteMeta(remote) + `:`)
		for _, n := range c.Nodes {
			raw, err := os.ReadFile(n.Daemon.LogPath())
			labtest.Must(t, err)
			times += len(line.FindAll(raw, -1))
		}
		return times
	}
	for i, port := range []string{"4505", "4506"} { // PROXY version 2 and 1
		rubbish(minions, lb.Addr+":"+port, "")
		labtest.Must(t, lab.Eventually(ctx, 20*time.Second, "the minions' address in a log", func(context.Context) error {
			if n := logged("protocol", minions.Addr); n != i+1 {
				return fmt.Errorf("%d times instead of %d", n, i+1)
			}
			return nil
		}))
	}
	rubbish(minions, c.Nodes[0].Addr+":4506", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n") // past the load balancer
	if logged("protocol", "192.0.2.1") > 0 {
		t.Error("a stranger was believed")
	}
	refused := func() float64 {
		return metricSum(t, c.Nodes[0], "saltcluster_edge_ended_connections_total", `edge="req"`, `reason="proxy_header"`)
	}
	before := refused()
	rubbish(lb, c.Nodes[0].Addr+":4506", "") // the load balancer forgets its header
	labtest.Must(t, lab.Eventually(ctx, 20*time.Second, "the connection to be counted", func(context.Context) error {
		if n := refused() - before; n != 1 {
			return fmt.Errorf("%v refused", n)
		}
		return nil
	}))
}

// A node is drained while its cluster works: the load balancer leaves it without cutting anybody off, its minions move,
// its master goes on publishing, and it comes back.
func testDrain(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	other, node := c.Nodes[0], c.Nodes[1]
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "a subscriber on "+node.Name, func(ctx context.Context) error {
		if subscribers(t, c)[node.Name] > 0 {
			return nil
		}
		// Round robin has put none there: a minion that starts anew goes to the next node.
		return c.Minions[0].Restart(ctx)
	}))
	labtest.Must(t, c.Answering(ctx, node))
	res, err := other.Daemon.Ctl(ctx, "drain", node.Name, "--wait-jobs", "--timeout", "2m")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	t.Log(res.Output())
	states, err := c.LB.Servers(ctx, node.Name)
	labtest.Must(t, err)
	for part, s := range states {
		if s.Status != "NOLB" {
			t.Errorf("HAProxy sees %s of %s as %s (%d sessions)", part, node.Name, s.Status, s.Current)
		}
	}
	check.Equal(t, subscribers(t, c)[node.Name], 0, "subscribers left")
	labtest.Must(t, c.Answering(ctx, other))
	labtest.Must(t, c.Answering(ctx, node)) // its own master, through the other node
	if n := subscribers(t, c)[node.Name]; n != 0 {
		t.Errorf("%v subscribers came to a drained node", n)
	}
	drained := func(want bool) { // what one node was told, the others know a moment later
		labtest.Must(t, lab.Eventually(ctx, 10*time.Second, "the other node to know", func(ctx context.Context) error {
			var st adminapi.Members
			if err := other.Daemon.CtlJSON(ctx, &st, "members"); err != nil {
				return err
			}
			for _, m := range st.Members {
				if m.ID == node.Name && m.Draining != want {
					return fmt.Errorf("%s is draining: %t", m.ID, m.Draining)
				}
			}
			return nil
		}))
	}
	drained(true)
	labtest.Must(t, node.Daemon.Restart(ctx))
	labtest.Must(t, node.Daemon.WaitReady(ctx, time.Minute))
	res, err = other.Daemon.Ctl(ctx, "undrain", node.Name, "--timeout", "2m")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	drained(false)
	labtest.Must(t, node.Daemon.Serving(ctx, time.Minute))
	labtest.Must(t, lab.Eventually(ctx, 30*time.Second, "HAProxy to come back", func(ctx context.Context) error {
		states, err := c.LB.Servers(ctx, node.Name)
		for part, s := range states {
			if !strings.HasPrefix(s.Status, "UP") {
				return fmt.Errorf("%s is %s", part, s.Status)
			}
		}
		return err
	}))
	labtest.Must(t, c.Answering(ctx, node))
}

// saltclusterd is stopped as systemd does it: minions are handed over first, and no request is lost.
func testGentleStop(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	node := c.Nodes[1]
	began := time.Now()
	labtest.Must(t, node.Daemon.Stop(ctx))
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
	check.Equal(t, node.Daemon.ExitCode(), 0, "exit code")
	labtest.Must(t, c.Answering(ctx, c.Nodes[0]))
	labtest.Must(t, node.Daemon.Start(ctx))
	labtest.Must(t, node.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, c.Answering(ctx, node))
}

// The network between load balancer and a node goes without a word: the node cuts the subscribers that are not there
// any more, and counts them.
func testHalfOpen(t *testing.T, c *lab.Cluster) {
	labtest.NeedNetwork(t, c.Lab)
	ctx := t.Context()
	var node *lab.Node
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "a node with subscribers", func(context.Context) error {
		for name, n := range subscribers(t, c) {
			for _, candidate := range c.Nodes {
				if candidate.Name == name && n > 0 {
					node = candidate
					return nil
				}
			}
		}
		return fmt.Errorf("none")
	}))
	had := subscribers(t, c)[node.Name]
	silent := metricSum(t, node, "saltcluster_edge_ended_connections_total", `edge="pub"`, `reason="silent"`)
	labtest.Must(t, c.Lab.Partition(ctx, []*lab.Host{node.Host}, []*lab.Host{c.LB.Host()}))
	err := lab.Eventually(ctx, 20*time.Second, "half-open subscribers to be cut", func(context.Context) error {
		if n := metricSum(t, node, "saltcluster_edge_ended_connections_total", `edge="pub"`,
			`reason="silent"`) - silent; n < had {
			return fmt.Errorf("%v of %v cut as silent", n, had)
		}
		return nil
	})
	labtest.Must(t, c.Lab.Heal(ctx))
	labtest.Must(t, err)
	labtest.Must(t, c.Answering(ctx, node))
}

// TestIdleForTenMinutes is the same with the defaults on both sides: PING every 10 s, a load balancer that cuts after
// 30 s. It runs with "make test-idle".
func TestIdleForTenMinutes(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes twelve minutes: make test-idle")
	}
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{"3008.3", "3007.15"}, Minions: lab.Versions,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15}, DaemonSettings: metricsForAll,
		LB: lab.LBOptions{Idle: 30 * time.Second},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	keepIdle(t, c, 10*time.Minute)
}

//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// TestTransports: minions of three versions with Salt's tcp transport, and of two with ws, are beside those with zeromq
// in one cluster, behind one HAProxy that sends PROXY headers. Each promise holds for all, and a minion is moved from one
// to the other. Salt's minions with ws do not survive the end of their connection: they stop before.
func TestTransports(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	lb, err := l.Host(t.Context(), "lb") // first: its address is part of the nodes' configuration
	labtest.Must(t, err)
	masters := presenceSettings(t)
	masters["timeout"], masters["gather_job_timeout"] = 5, 15
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]}, Minions: lab.Versions, MasterSettings: masters,
		MinionSettings: lab.Settings{"multiprocessing": false},
		DaemonSettings: lab.Settings{
			"health_trusted": []string{"0.0.0.0/0"}, "proxy_protocol": true, "proxy_protocol_trusted": []string{lb.Addr},
			"drain_announce": "2s", "drain_time": "1s", "late_jobs": false, "cluster_presence_events": "on",
		},
		LB: lab.LBOptions{SendProxy: "send-proxy-v2", SendReq: "send-proxy"},
	})
	labtest.Must(t, err)
	h, err := l.Host(t.Context(), "min")
	labtest.Must(t, err)
	for _, v := range lab.Versions {
		m, err := h.NewMinion(v, "min"+v[2:4]+"-tcp", lb.Addr, lab.Settings{"transport": "tcp", "multiprocessing": false})
		labtest.Must(t, err)
		c.Minions = append(c.Minions, m)
	}
	labtest.Must(t, c.Up(t.Context()))
	startTransportWS(t, c, h, lb.Addr)
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"targets", testTransportTargets},
		{"takeover", testTransportTakeover},
		{"a minion is moved", testTransportMove},
		{"ws minions stop", testTransportStopWS},
		{"drain", testTransportDrain},
		{"a node is killed", testTransportKill},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	}
}

// startTransportWS starts minions with ws, when the nodes serve: those that find nothing when they start give up.
func startTransportWS(t *testing.T, c *lab.Cluster, h *lab.Host, addr string) {
	for _, v := range lab.Versions[1:] {
		m, err := h.NewMinion(v, "min"+v[2:4]+"-ws", addr, lab.Settings{
			"transport": "ws", "multiprocessing": false})
		labtest.Must(t, err)
		labtest.Must(t, m.Start(t.Context()))
		c.Minions = append(c.Minions, m)
	}
	labtest.Must(t, c.AcceptKeys(t.Context()))
	labtest.Must(t, c.Answering(t.Context(), c.Nodes[0]))
}

// tcpMinions are those with Salt's tcp transport.
func tcpMinions(c *lab.Cluster) (all []*lab.Minion) {
	for _, m := range c.Minions {
		if strings.HasSuffix(m.ID, "-tcp") {
			all = append(all, m)
		}
	}
	return all
}

// delivered counts what the nodes have written to subscribers.
func delivered(t *testing.T, c *lab.Cluster) (n float64) {
	for _, node := range c.Nodes {
		n += metricSum(t, node, "saltcluster_edge_deliveries_total", `edge="pub"`)
	}
	return n
}

// testTransportTargets: each minion is asked by each kind of target, calls files and pillar, and a list goes to no minion
// with tcp that is not on it.
func testTransportTargets(t *testing.T, c *lab.Cluster) {
	ctx, tcp := t.Context(), tcpMinions(c)
	var ids, others []string
	for _, m := range c.Minions {
		if strings.HasSuffix(m.ID, "-tcp") {
			ids = append(ids, m.ID)
		}
		if strings.HasSuffix(m.ID, "-tcp") || strings.HasSuffix(m.ID, "-ws") {
			others = append(others, m.ID)
		}
	}
	for i, target := range []struct {
		call []string
		want []string
	}{
		{[]string{"*-tcp", "test.ping"}, ids},
		{[]string{"-E", ".*-(tcp|ws)", "test.ping"}, others},
		{[]string{"-G", "kernel:Linux", "test.ping"}, c.IDs()},
		{[]string{"-L", strings.Join(c.IDs(), ","), "test.ping"}, c.IDs()},
	} {
		n := c.Nodes[i%len(c.Nodes)]
		got, err := n.Master.Pub(ctx, target.call[0], target.call[1], target.call[2:]...)
		labtest.Must(t, err)
		check.NoError(t, lab.AnsweredBy(got, target.want...), n.Name, target.call)
	}
	for _, call := range [][]string{{"cp.hash_file", "salt://demo/init.sls"}, {"event.send", "lab/tcp"}} {
		got, err := c.Nodes[0].Master.Pub(ctx, "-E", ".*-(tcp|ws)", call...)
		labtest.Must(t, err)
		for _, id := range others {
			if got[id] == nil || got[id] == false {
				t.Errorf("%s answers %s with %v", id, call[0], got[id])
			}
		}
	}
	before := delivered(t, c)
	_, err := c.Nodes[0].Master.Pub(ctx, "-L", tcp[0].ID, "test.ping")
	labtest.Must(t, err)
	// minions with ws, or with zeromq that do not filter, get it, and the one that it is for; find_job of a slow one comes
	// on top
	if got, each := int(delivered(t, c)-before), len(c.Minions)-len(tcp)+1; got < each || got%each != 0 {
		t.Errorf("a list target of one minion was delivered %v times, with %v minions", got, len(c.Minions))
	}
	presentIs(t, c.Nodes, time.Minute, c.IDs()...)
}

// testTransportTakeover: both nodes' daemons are replaced under a ping loop, and no connection ends.
func testTransportTakeover(t *testing.T, c *lab.Cluster) {
	marks, before := logSizes(t, c), connections(t, c.LB.Host(), c.Minions[0].Host())
	jobs := newPublisher(t, c.Nodes[0])
	for _, n := range c.Nodes {
		upgradeDaemon(t, n)
	}
	jobs.judge(t, c.IDs())
	after := connections(t, c.LB.Host(), c.Minions[0].Host())
	for _, conn := range before {
		if !slices.Contains(after, conn) {
			t.Errorf("the connection %s has ended", conn)
		}
	}
	for _, m := range c.Minions {
		for _, sign := range []string{"Authentication", "re-auth", "SaltReqTimeoutError", "reconnect"} {
			if strings.Contains(since(t, m, marks[m.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", m.ID, sign)
			}
		}
	}
}

func testTransportDrain(t *testing.T, c *lab.Cluster) {
	testTransportStopWS(t, c) // when this step is run by itself
	from, to := c.Nodes[0], c.Nodes[1]
	must(t, to.Daemon, "drain", from.Name, "--timeout", "2m")
	labtest.Must(t, c.Answering(t.Context(), to))
	if n := subscribers(t, c)[from.Name]; n != 0 {
		t.Errorf("%v subscribers are left", n)
	}
	must(t, to.Daemon, "undrain", from.Name, "--timeout", "2m")
}

func testTransportKill(t *testing.T, c *lab.Cluster) {
	testTransportStopWS(t, c)
	n := c.Nodes[0]
	labtest.Must(t, n.Daemon.Kill())
	labtest.Must(t, c.Answering(t.Context(), c.Nodes[1]))
	labtest.Must(t, n.Daemon.Start(t.Context()))
	labtest.Must(t, n.Daemon.Serving(t.Context(), 2*time.Minute))
	labtest.Must(t, c.Answering(t.Context(), n))
}

// testTransportStopWS stops the minions with ws, and no connection of theirs is left on the nodes. That they are away is
// known no sooner than of those with zeromq: they never name themselves.
func testTransportStopWS(t *testing.T, c *lab.Cluster) {
	c.Minions = slices.DeleteFunc(c.Minions, func(m *lab.Minion) bool {
		ws := strings.HasSuffix(m.ID, "-ws")
		if ws {
			labtest.Must(t, m.Stop(t.Context()))
		}
		return ws
	})
	// requests have connections of their own, which end when they were idle
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "no more connections with ws", func(context.Context) error {
		var n float64
		for _, node := range c.Nodes {
			n += metricSum(t, node, "saltcluster_edge_transport_connections", `edge="pub"`, `transport="ws"`)
		}
		if n > 0 {
			return fmt.Errorf("%v are left", n)
		}
		return nil
	}))
}

// testTransportMove moves a minion to tcp, to ws and back while the others are asked. It is one of 3008: told to end, one
// of 3007 may wait a minute for its threads, whose answers its own event bus has lost.
func testTransportMove(t *testing.T, c *lab.Cluster) {
	ctx, m := t.Context(), c.Minions[2]
	path := filepath.Join(m.ConfigDir, "minion")
	zeromq, err := os.ReadFile(path)
	labtest.Must(t, err)
	others := slices.DeleteFunc(c.IDs(), func(id string) bool { return id == m.ID })
	list := strings.Join(others, ",")
	for _, config := range []string{string(zeromq) + "transport: tcp\n", string(zeromq) + "transport: ws\n", string(zeromq)} {
		labtest.Must(t, m.Stop(ctx))
		labtest.Must(t, os.WriteFile(path, []byte(config), 0o644))
		labtest.Must(t, m.Start(ctx))
		labtest.Must(t, lab.Eventually(ctx, time.Minute, m.ID+" to answer", func(ctx context.Context) error {
			got, err := c.Nodes[0].Master.Pub(ctx, "-L", list, "test.ping")
			labtest.Must(t, err)
			check.NoError(t, lab.AnsweredBy(got, others...), "meanwhile")
			got, err = c.Nodes[1].Master.Pub(ctx, m.ID, "test.ping")
			if err == nil && got[m.ID] != true {
				err = fmt.Errorf("answered %v", got)
			}
			return err
		}))
	}
}

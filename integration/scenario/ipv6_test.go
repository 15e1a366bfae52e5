//go:build integration

package scenario

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/zmtp"
)

// networkMay is how many connections the addresses of a /64 may have together on a port.
const networkMay = 60

// TestIPv6: hosts that have no IPv4 address but loopback's. Nodes join by address and meet at it; HAProxy sends PROXY
// headers with the minions' addresses.
func TestIPv6(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{IPv6: true})
	labtest.NeedNetwork(t, l)
	lb, err := l.Host(t.Context(), "lb") // first: its address is part of the nodes' configuration
	labtest.Must(t, err)
	masters := presenceSettings(t)
	masters["ipv6"], masters["timeout"], masters["gather_job_timeout"] = true, 5, 15
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]}, Minions: lab.Versions,
		MasterSettings: masters, MinionSettings: lab.Settings{"ipv6": true},
		DaemonSettings: lab.Settings{
			"health_trusted": []string{"::/0"}, "proxy_protocol": true, "proxy_protocol_trusted": []string{lb.Addr},
			"cluster_presence_events": "on", "max_connections": 2 * networkMay, "max_connections_per_address": 30,
		},
		LB: lab.LBOptions{SendProxy: "send-proxy-v2", SendReq: "send-proxy-v2"},
	})
	labtest.Must(t, err)
	h, err := l.Host(t.Context(), "min")
	labtest.Must(t, err)
	tcp, err := h.NewMinion(lab.Versions[2], "min08-tcp", lb.Addr, lab.Settings{"transport": "tcp", "ipv6": true})
	labtest.Must(t, err)
	c.Minions = append(c.Minions, tcp)
	labtest.Must(t, c.Up(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"addresses", testIPv6Addresses},
		{"presence", func(t *testing.T, c *lab.Cluster) { presentIs(t, c.Nodes, time.Minute, c.IDs()...) }},
		{"files and events", testIPv6Calls},
		{"a network takes all its connections", testIPv6Network},
		{"takeover", testTransportTakeover},
		{"a node is killed", testIPv6Kill},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	}
}

// testIPv6Addresses: members are known by their addresses.
func testIPv6Addresses(t *testing.T, c *lab.Cluster) {
	for _, n := range c.Nodes {
		out := must(t, n.Daemon, "members", "--out", "json").Stdout
		for _, other := range c.Nodes {
			if !strings.Contains(out, other.Addr) {
				t.Errorf("members of %s lack %s:\n%s", n.Name, other.Addr, out)
			}
		}
	}
}

// testIPv6Network: a stranger with all addresses of a /64 has its share of the connections, each of its addresses less,
// and others are let in and served meanwhile.
func testIPv6Network(t *testing.T, c *lab.Cluster) {
	n := c.Nodes[0]
	full := func() float64 {
		return metricSum(t, n, "saltcluster_edge_ended_connections_total", `edge="req"`, `reason="address_full"`)
	}
	before := full()
	letIn := func(addr string) bool {
		conn, err := c.LB.Host().Dial(t.Context(), "tcp", net.JoinHostPort(n.Addr, "4506"))
		labtest.Must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "PROXY TCP6 %s %s 1 4506\r\n", addr, n.Addr)
		labtest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), exchangeWithin)
		defer cancel()
		_, err = zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: "REQ", Limits: zmtp.DefaultLimits})
		return err == nil
	}
	in := 0
	for i := range networkMay + 5 {
		if letIn(fmt.Sprintf("2001:db8:1:1:%x::1", i+1)) {
			in++
		}
	}
	if in != networkMay {
		t.Errorf("%d addresses of a /64 are let in, not %d", in, networkMay)
	}
	eventually(t, time.Minute, "those that are refused to be counted", func() bool { return full()-before == 5 })
	if !letIn("2001:db8:1:2::1") {
		t.Error("the next /64 is not let in")
	}
	labtest.Must(t, c.Answering(t.Context(), n))
}

func testIPv6Kill(t *testing.T, c *lab.Cluster) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-transports; TestTransports kills one with IPv4")
	}
	testTransportKill(t, c)
}

// testIPv6Calls: what minions ask for on the request port.
func testIPv6Calls(t *testing.T, c *lab.Cluster) {
	for i, call := range [][]string{{"cp.hash_file", "salt://demo/init.sls"}, {"event.send", "lab/ipv6"}, {"pillar.items"}} {
		got, err := c.Nodes[i%len(c.Nodes)].Master.Pub(t.Context(), "*", call[0], call[1:]...)
		labtest.Must(t, err)
		for _, m := range c.Minions {
			if got[m.ID] == nil || got[m.ID] == false {
				t.Errorf("%s answers %s with %v", m.ID, call[0], got[m.ID])
			}
		}
	}
}

// TestAdoptIPv6: a master that listens at all addresses of a host with IPv6.
func TestAdoptIPv6(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-adopt; TestIPv6 has the rest")
	}
	a := newAdopterIn(t, lab.Options{IPv6: true}, lab.Settings{"interface": "::", "ipv6": true}, lab.Settings{"ipv6": true},
		lab.Versions[0], lab.Versions[1:]...)
	keys := a.keys()
	_, took, none := a.adopt()
	t.Logf("all answer again after %s; no connection for %v", took, none)
	a.same(keys)
}

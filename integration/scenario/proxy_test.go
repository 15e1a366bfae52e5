//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// proxyVersions are those whose salt-proxy comes to its start: one of 3008.3 waits for ever in saltutil.sync_all, with a
// stock master, too (docs/dev/upstream.md).
var proxyVersions = []string{"3006.28", "3007.15"}

// TestProxies has a salt-proxy and a deltaproxy with eight ids of each version: all nodes reach them and say that they are
// there, whichever node is gone, and the key of one id can be deleted, though all ids of a deltaproxy share it.
func TestProxies(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("waits for proxies to find other nodes: make test-proxies")
	}
	ctx := t.Context()
	masters, daemons := presenceSettings(t), maps.Clone(metricsForAll)
	maps.Copy(masters, clusterMasters)
	masters["auto_accept"] = true
	l := labtest.New(t, lab.Options{})
	lb, err := l.Host(ctx, "lb") // first: its address is part of the nodes' configuration
	labtest.Must(t, err)
	daemons["proxy_protocol"], daemons["proxy_protocol_trusted"] = true, []string{lb.Addr} // for who is present
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions[:1], MasterSettings: masters, DaemonSettings: daemons,
		LB: lab.LBOptions{SendProxy: "send-proxy-v2", SendReq: "send-proxy-v2"},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	ids, deltas := startProxies(t, c)
	for _, n := range c.Nodes {
		answerAll(t, n, ids, 3*time.Minute)
		site, err := n.Master.Pub(ctx, "sub*", "pillar.get", "site")
		labtest.Must(t, err)
		for _, id := range ids {
			if strings.HasPrefix(id, "sub") && site[id] != "of "+id {
				t.Errorf("%s: the pillar of %s has %v", n.Name, id, site[id])
			}
		}
		jid := async(t, n, "test.arg", "one")
		inCacheOf(t, c, n, jid, time.Minute, ids...)
	}
	presentIs(t, c.Nodes, time.Minute, ids...)
	testDeltaRestarted(t, c, deltas)

	gone := c.Nodes[0]
	labtest.Must(t, gone.Daemon.Kill())
	labtest.Must(t, gone.Master.Kill())
	for _, n := range c.Nodes[1:] {
		answerAll(t, n, ids, 2*time.Minute)
	}
	labtest.Must(t, gone.Master.Start(ctx))
	labtest.Must(t, gone.Daemon.Start(ctx))
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))

	const refused = "sub06-3"
	res, err := c.Nodes[1].Daemon.Ctl(ctx, "keys", "reject", "-y", refused)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == refused })
	for _, n := range c.Nodes {
		answerAll(t, n, left, 2*time.Minute)
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "an id with the same key", func(ctx context.Context) error {
			got, err := n.Master.Pub(ctx, "L@"+refused+",sub06-4", "test.ping", "-C")
			if got[refused] == true {
				t.Errorf("%s: %s answers after its rejection", n.Name, refused)
			}
			if err == nil && got["sub06-4"] != true {
				err = fmt.Errorf("%s hears %v", n.Name, got)
			}
			return err
		}))
	}
}

// testDeltaRestarted: what the ids of a deltaproxy have run before it is restarted they do not run again, though they sign
// in only after the process that stands for them has subscribed, which is given late what it may have missed.
func testDeltaRestarted(t *testing.T, c *lab.Cluster, deltas []*lab.Proxy) {
	t.Helper()
	ctx := t.Context()
	for i, p := range deltas {
		n := c.Nodes[i%len(c.Nodes)]
		var subs []string
		for j := range 8 {
			subs = append(subs, fmt.Sprintf("sub%s-%d", p.Version[2:4], j+1))
		}
		ran := filepath.Join(p.Host().Dir(), "ran-"+p.ID)
		got, err := n.Master.Pub(ctx, strings.Join(subs, ","), "cmd.run", "echo x >>"+ran, "-L")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, subs...))
		before := givenLate(t, c)
		labtest.Must(t, p.Kill())
		labtest.Must(t, p.Start(ctx))
		// A slow machine may need more than the minute for which the job is kept: there is always one to give.
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "late publications", func(context.Context) error {
			asyncTo(t, n, c.Minions, "test.arg", "there is something to give")
			if now := givenLate(t, c); now <= before {
				return fmt.Errorf("%v were given, as before", now)
			}
			return nil
		}))
		answerAll(t, n, subs, 3*time.Minute)
		text, err := os.ReadFile(ran)
		if got := strings.Count(string(text), "x"); err != nil || got != len(subs) {
			t.Errorf("%s: %d ids ran a job %d times: %v", p.ID, len(subs), got, err)
		}
	}
}

// startProxies writes the pillars of proxies, starts these, and returns all ids, minions included, and the deltaproxies.
func startProxies(t *testing.T, c *lab.Cluster) (ids []string, deltas []*lab.Proxy) {
	t.Helper()
	ctx := t.Context()
	pillars := map[string]string{"dummy.sls": "proxy: {proxytype: dummy}\nsite: of {{ grains['id'] }}\n"}
	top := "base:\n  '*': [demo]\n  'dummy*': [dummy]\n  'sub*': [dummy]\n"
	var proxies []*lab.Proxy
	h, err := c.Lab.Host(ctx, "proxies")
	labtest.Must(t, err)
	for _, v := range proxyVersions {
		line := v[2:4]
		var subs []string
		for i := range 8 {
			subs = append(subs, fmt.Sprintf("sub%s-%d", line, i+1))
		}
		delta := "delta" + line
		pillars[delta+".sls"] = fmt.Sprintf("proxy: {proxytype: deltaproxy, ids: [%s]}\n", strings.Join(subs, ", "))
		top += fmt.Sprintf("  %s: [%s]\n", delta, delta)
		for _, id := range []string{"dummy" + line, delta} {
			over := lab.Settings{"rejected_retry": true} // else all ids of a process end when one is rejected
			if id == delta {
				over["metaproxy"] = "deltaproxy"
			}
			p, err := h.NewProxy(v, id, c.LB.Host().Addr, over)
			labtest.Must(t, err)
			proxies, ids = append(proxies, p), append(ids, id)
			if id == delta {
				deltas = append(deltas, p)
			}
		}
		ids = append(ids, subs...)
	}
	pillars["top.sls"] = top
	root := func(n *lab.Node, name string) string { return filepath.Join(n.Host.Dir(), "srv/pillar", name) }
	for name, text := range pillars {
		labtest.Must(t, os.WriteFile(root(c.Nodes[0], name), []byte(text), 0o644))
	}
	onNodes(t, c.Nodes, "the pillars of the proxies", func(n *lab.Node) error {
		for name, text := range pillars {
			if got, err := os.ReadFile(root(n, name)); err != nil || string(got) != text {
				return fmt.Errorf("%s is %q, %w", name, got, err)
			}
		}
		return nil
	})
	for _, p := range proxies {
		labtest.Must(t, p.Start(ctx))
		t.Cleanup(func() { _ = p.Kill() })
	}
	return append(ids, c.IDs()...), deltas
}

// answerAll waits until all ids answer a command of n's master.
func answerAll(t *testing.T, n *lab.Node, ids []string, within time.Duration) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, "answers at "+n.Name, func(ctx context.Context) error {
		got, err := n.Master.Pub(ctx, strings.Join(ids, ","), "test.ping", "-L")
		if err != nil {
			return err
		}
		return lab.AnsweredBy(got, ids...)
	}))
}

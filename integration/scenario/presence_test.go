//go:build integration

package scenario

import (
	"bufio"
	"context"
	"encoding/json"
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

// presenceSettings put our runners and wheel modules where each master looks for them.
func presenceSettings(t *testing.T) lab.Settings {
	t.Helper()
	dir := t.TempDir() // Python leaves its __pycache__ there
	for _, kind := range []string{"runners", "wheel"} {
		sources, err := filepath.Glob("../../packaging/" + kind + "/*.py")
		labtest.Must(t, err)
		labtest.Must(t, os.Mkdir(filepath.Join(dir, kind), 0o755))
		for _, source := range sources {
			text, err := os.ReadFile(source)
			labtest.Must(t, err)
			labtest.Must(t, os.WriteFile(filepath.Join(dir, kind, filepath.Base(source)), text, 0o644))
		}
	}
	return lab.Settings{"runner_dirs": []string{dir + "/runners"}, "wheel_dirs": []string{dir + "/wheel"}}
}

// TestPresence is who is alive, as stock commands and events tell it behind a load balancer: minions with addresses of
// their own, which one HAProxy with PROXY headers says. "make test-presence".
func TestPresence(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("waits for minions to be lost: make test-presence")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	lb, err := l.Host(ctx, "lb") // first: its address is part of the nodes' configuration
	labtest.Must(t, err)
	masters := presenceSettings(t)
	maps.Copy(masters, clusterMasters)
	masters["loop_interval"] = 2
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, MasterSettings: masters,
		DaemonSettings: lab.Settings{"proxy_protocol": true, "proxy_protocol_trusted": []string{lb.Addr},
			"cluster_presence_events": "on"},
		LB: lab.LBOptions{SendProxy: "send-proxy-v2", SendReq: "send-proxy-v2"},
	})
	labtest.Must(t, err)
	for i, v := range lab.Versions {
		h, err := l.Host(ctx, fmt.Sprint("w", i+1))
		labtest.Must(t, err)
		m, err := h.NewMinion(v, h.Name, lb.Addr)
		labtest.Must(t, err)
		c.Minions = append(c.Minions, m)
	}
	labtest.Must(t, c.Up(ctx))
	watchers := watchPresence(ctx, t, c)
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster, []*lab.Process)
	}{
		{"all are there", testAllPresent},
		{"a minion stops", testMinionStops},
		{"the node of a minion is killed", testNodeOfMinionKilled},
	} {
		if ok := t.Run(s.name, func(t *testing.T) { s.test(t, c, watchers) }); !ok {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	}
}

// watchPresence has each master's salt-run write down the events.
func watchPresence(ctx context.Context, t *testing.T, c *lab.Cluster) (all []*lab.Process) {
	t.Helper()
	for _, n := range c.Nodes {
		p := n.NewProcess(lab.Spec{
			Name: "presence", Env: n.Master.Env(), Argv: []string{"/usr/bin/env", "salt-run", "state.event", "salt/presence/*",
				"pretty=False"},
		})
		labtest.Must(t, p.Start(ctx))
		t.Cleanup(func() { _ = p.Kill() })
		all = append(all, p)
	}
	return all
}

// presenceEvent is one of either tag.
type presenceEvent struct {
	node               string
	Present, New, Lost []string
	Stamp              string `json:"_stamp"`
}

// heardEvents are the events of a tag that the masters' buses had, node by node.
func heardEvents(t *testing.T, watchers []*lab.Process, tag string) (all []presenceEvent) {
	t.Helper()
	for _, w := range watchers {
		f, err := os.Open(w.LogPath())
		labtest.Must(t, err)
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), tag+"\t")
			e := presenceEvent{node: w.Host().Name}
			if ok && json.Unmarshal([]byte(text), &e) == nil {
				all = append(all, e)
			}
		}
		labtest.Must(t, lines.Err())
	}
	return all
}

// lostOf counts how often an id was said to be lost, on all buses.
func lostOf(t *testing.T, watchers []*lab.Process, id string) (n int) {
	t.Helper()
	for _, e := range heardEvents(t, watchers, "salt/presence/change") {
		if slices.Contains(e.Lost, id) {
			n++
		}
	}
	return n
}

// present asks a master who is there, with stock's own command.
func present(ctx context.Context, n *lab.Node, fun string, args ...string) (ids []string, err error) {
	res, err := n.Master.Run(ctx, "salt-run", append([]string{"--out=json", "--log-level=quiet", fun}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(res.Stdout), &ids); err != nil || res.Code != 0 {
		return nil, fmt.Errorf("%s (Salt %s): %s: exit code %d: %v: %s", n.Name, n.Master.Version, fun, res.Code, err,
			res.Output())
	}
	return ids, nil
}

// presentIs waits until every node of a list says the same.
func presentIs(t *testing.T, nodes []*lab.Node, within time.Duration, want ...string) {
	t.Helper()
	slices.Sort(want)
	labtest.Must(t, lab.Eventually(t.Context(), within, fmt.Sprint("present: ", want), func(ctx context.Context) error {
		for _, n := range nodes {
			got, err := present(ctx, n, "manage.present")
			if err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%s says %v", n.Name, got)
			}
		}
		return nil
	}))
}

// askWheel is what SaltGUI and the like ask.
const askWheel = `
import json, sys, salt.config, salt.wheel
opts = salt.config.master_config(sys.argv[1])
print(json.dumps(sorted(salt.wheel.WheelClient(opts).call_func("minions.connected"))))
`

func testAllPresent(t *testing.T, c *lab.Cluster, watchers []*lab.Process) {
	ctx := t.Context()
	ids := c.IDs()
	slices.Sort(ids)
	presentIs(t, c.Nodes, time.Minute, ids...)
	for _, n := range c.Nodes {
		for _, fun := range []string{"cluster.present", "cluster.alived", "manage.alived", "manage.up"} {
			if got, err := present(ctx, n, fun); err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s (Salt %s): %s: %v, %v", n.Name, n.Master.Version, fun, got, err)
			}
		}
		for _, fun := range []string{"cluster.not_present", "manage.not_alived", "manage.down"} {
			if got, err := present(ctx, n, fun); err != nil || len(got) != 0 {
				t.Errorf("%s (Salt %s): %s: %v, %v", n.Name, n.Master.Version, fun, got, err)
			}
		}
		if got, err := present(ctx, n, "manage.present", "subset=[w2,nobody]"); err != nil ||
			!slices.Equal(got, []string{"w2"}) {
			t.Errorf("%s: a subset: %v, %v", n.Name, got, err)
		}
		addresses := saltRun(ctx, t, n, "manage.present", "show_ip=True")
		for _, m := range c.Minions {
			if addresses[m.ID] != m.Host().Addr {
				t.Errorf("%s: %v, but %s has %s", n.Name, addresses, m.ID, m.Host().Addr)
			}
		}
		res, err := n.Master.Run(ctx, "python", "-c", askWheel, n.Master.ConfigDir+"/master")
		labtest.Must(t, err)
		var got []string
		lines := strings.Split(strings.TrimSpace(res.Stdout), "\n") // some versions print the answer themselves first
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s (Salt %s): minions.connected: %v, %v: %s", n.Name, n.Master.Version, got, err, res.Output())
		}
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the event of all", func(context.Context) error {
		for _, e := range heardEvents(t, watchers, "salt/presence/present") {
			if slices.Equal(e.Present, ids) && e.Stamp != "" {
				return nil
			}
		}
		return fmt.Errorf("%+v", heardEvents(t, watchers, "salt/presence/present"))
	}))
	leader := leaderOf(t, c)
	for _, e := range heardEvents(t, watchers, "salt/presence/present") {
		if e.node != leader {
			t.Errorf("%s, which does not lead, fired %+v", e.node, e)
		}
	}
}

func testMinionStops(t *testing.T, c *lab.Cluster, watchers []*lab.Process) {
	ctx := t.Context()
	gone := c.Minions[0]
	others := slices.DeleteFunc(c.IDs(), func(id string) bool { return id == gone.ID })
	labtest.Must(t, gone.Stop(ctx))
	presentIs(t, c.Nodes, time.Minute, others...)
	if got, err := present(ctx, c.Nodes[1], "manage.not_present"); err != nil || !slices.Equal(got, []string{gone.ID}) {
		t.Errorf("not present: %v, %v", got, err)
	}
	labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, "the event that it is lost", func(context.Context) error {
		if lostOf(t, watchers, gone.ID) == 0 {
			return fmt.Errorf("%+v", heardEvents(t, watchers, "salt/presence/change"))
		}
		return nil
	}))
	labtest.Must(t, gone.Start(ctx))
	presentIs(t, c.Nodes, 2*time.Minute, c.IDs()...)
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the event that it is back", func(context.Context) error {
		all := heardEvents(t, watchers, "salt/presence/change")
		if last := all[len(all)-1]; !slices.Equal(last.New, []string{gone.ID}) || len(last.Lost) != 0 {
			return fmt.Errorf("%+v", last)
		}
		return nil
	}))
	if n := lostOf(t, watchers, gone.ID); n != 1 {
		t.Errorf("lost %d times", n)
	}
	for _, id := range others {
		if n := lostOf(t, watchers, id); n != 0 {
			t.Errorf("%s, which is there, was lost %d times", id, n)
		}
	}
}

// Whoever was on a node that is killed comes back by another one, and nobody is told that it was lost.
func testNodeOfMinionKilled(t *testing.T, c *lab.Cluster, watchers []*lab.Process) {
	ctx := t.Context()
	var shown struct {
		Minions []struct{ ID, Node string }
	}
	labtest.Must(t, c.Nodes[0].Daemon.CtlJSON(ctx, &shown, "minions", "--present"))
	at := slices.IndexFunc(c.Nodes, func(n *lab.Node) bool { return n.Name == shown.Minions[len(shown.Minions)-1].Node })
	if at < 0 {
		t.Fatalf("%+v", shown)
	}
	dead := c.Nodes[at]
	others := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *lab.Node) bool { return n == dead })
	before := map[string]int{}
	for _, id := range c.IDs() {
		before[id] = lostOf(t, watchers, id)
	}
	labtest.Must(t, dead.Daemon.Kill())
	killed := time.Now()
	for _, n := range others {
		labtest.Must(t, c.Answering(ctx, n)) // all are back
	}
	presentIs(t, others, time.Minute, c.IDs()...)
	// What is said must hold when the dead node's word counts no more, and the grace is over: two minutes.
	labtest.Must(t, lab.Eventually(ctx, 5*time.Minute, "an event of long after", func(context.Context) error {
		if time.Since(killed) < 150*time.Second {
			return fmt.Errorf("%s since the node was killed", time.Since(killed))
		}
		return nil
	}))
	presentIs(t, others, time.Minute, c.IDs()...)
	for _, id := range c.IDs() {
		if n := lostOf(t, watchers, id); n != before[id] {
			t.Errorf("%s was lost: %+v", id, heardEvents(t, watchers, "salt/presence/change"))
		}
	}
	labtest.Must(t, dead.Daemon.Start(ctx))
	labtest.Must(t, dead.Daemon.Serving(ctx, 2*time.Minute))
	presentIs(t, c.Nodes, time.Minute, c.IDs()...)
}

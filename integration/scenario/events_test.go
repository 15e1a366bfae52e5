//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// eventSettings are what the tests of events want of each saltclusterd.
var eventSettings = func() lab.Settings {
	s := maps.Clone(metricsForAll)
	s["cluster_event_policy"] = map[string]string{
		"lab/count/origin/*": "origin", "lab/count/leader/*": "leader", "lab/count/all/*": "all",
		"lab/count/owner/*": "owner",
	}
	s["cluster_event_mirror"] = []string{"lab/mirror/*"}
	s["cluster_wall"] = wallEnforced
	return s
}()

// countReactions gives each master a reactor that writes down every run, with a runner of its own.
func countReactions(c *lab.Cluster, settings lab.Settings) error {
	for _, n := range c.Nodes {
		if err := countReactionsOn(n, settings); err != nil {
			return err
		}
	}
	return nil
}

// countReactionsOn does it for one; it reacts to those tags besides.
func countReactionsOn(n *lab.Node, settings lab.Settings, besides ...string) error {
	dir := filepath.Join(n.Dir(), "srv", "reactor")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sls := filepath.Join(dir, "count.sls")
	for path, text := range map[string]string{
		sls:                               "count:\n  runner.labcount.add:\n    - args:\n      - line: {{ tag }}\n",
		filepath.Join(dir, "labcount.py"): fmt.Sprintf(countRunner, countFile(n)),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	var reactions []any
	tags := []string{"lab/count/*", "cluster/event/*/lab/mirror/*", "lab/mirror/*", "syndic/*/lab/count/*"}
	for _, tag := range append(tags, besides...) {
		reactions = append(reactions, map[string]any{tag: []string{sls}})
	}
	return n.Master.Configure(settings, lab.Settings{"runner_dirs": []string{dir}, "reactor": reactions})
}

const countRunner = `import os


def add(line):
    out = os.open(%q, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    try:
        os.write(out, (line + "\n").encode())
    finally:
        os.close(out)
`

func countFile(n *lab.Node) string { return filepath.Join(n.Dir(), "counted") }

// counted is how often each node's reactor ran, by tag.
func counted(c *lab.Cluster) (map[string]map[string]int, error) {
	out := map[string]map[string]int{}
	for _, n := range c.Nodes {
		raw, err := os.ReadFile(countFile(n))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		runs := map[string]int{}
		for _, tag := range strings.Fields(string(raw)) {
			runs[tag]++
		}
		out[n.Name] = runs
	}
	return out, nil
}

// awaitCounts waits until every tag ran as often as wanted on all nodes together, and for what came last besides: an
// event for all, sent after the others.
func awaitCounts(t *testing.T, c *lab.Cluster, want map[string]int) map[string]map[string]int {
	t.Helper()
	last := "lab/count/all/last-" + fmt.Sprint(time.Now().UnixNano())
	_, err := c.Nodes[0].Master.Pub(t.Context(), c.Minions[0].ID, "event.send", last)
	labtest.Must(t, err)
	var got map[string]map[string]int
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the reactors", func(context.Context) (err error) {
		if got, err = counted(c); err != nil {
			return err
		}
		for _, n := range c.Nodes {
			if got[n.Name][last] == 0 {
				return fmt.Errorf("the last event has not been reacted to on %s", n.Name)
			}
		}
		for tag, times := range want {
			if sum(got, tag) < times {
				return fmt.Errorf("%s: %d runs of %d: %v", tag, sum(got, tag), times, got)
			}
		}
		return nil
	}))
	for tag, times := range want {
		if n := sum(got, tag); n != times {
			t.Errorf("%s: %d runs, not %d: %v", tag, n, times, got)
		}
	}
	return got
}

func sum(runs map[string]map[string]int, tag string) (n int) {
	for _, r := range runs {
		n += r[tag]
	}
	return n
}

// Reactors of stock masters run as often as cluster_event_policy says, for events sent one by one and for lists of
// them.
func testEventPolicy(t *testing.T, c *lab.Cluster) {
	minions, masters := len(c.Minions), len(c.Nodes)
	all := map[string]int{"owner": minions, "origin": minions, "leader": minions, "all": minions * masters}
	want := map[string]int{}
	_, err := c.Nodes[0].Master.Pub(t.Context(), "*", "saltutil.sync_modules")
	labtest.Must(t, err)
	var list []string
	for policy, times := range all {
		tag := "lab/count/" + policy + "/single"
		got, err := c.Nodes[1].Master.Pub(t.Context(), "*", "event.send", tag, "{n: 1}")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		want[tag] = times
		for _, part := range []string{"list-a", "list-b"} {
			tag := "lab/count/" + policy + "/" + part
			list, want[tag] = append(list, tag), times
		}
	}
	got, err := c.Nodes[2].Master.Pub(t.Context(), "*", "labmod.fire", strings.Join(list, ","))
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	// A syndic's list has a tag before each tag, and both are fired.
	_, err = c.Nodes[2].Master.Pub(t.Context(), "*", "labmod.fire", "lab/count/leader/pre,lab/count/all/pre",
		"pretag=lab/count/pre")
	labtest.Must(t, err)
	for policy, times := range map[string]int{"leader": minions, "all": minions * masters} {
		tag := "lab/count/" + policy + "/pre"
		want[tag], want["lab/count/pre/"+tag] = times, times
	}
	runs := awaitCounts(t, c, want)
	leader := leaderOf(t, c)
	if n := runs[leader]["lab/count/leader/list-a"]; n != minions {
		t.Errorf("%d of %d events for the leader, %s, fired there: %v", n, minions, leader, runs)
	}
}

// leaderOf names the node that leads the cluster.
func leaderOf(t *testing.T, c *lab.Cluster) string {
	t.Helper()
	all, err := c.Nodes[0].Daemon.Members(t.Context())
	labtest.Must(t, err)
	for _, m := range all.Members {
		if m.Leader {
			return m.ID
		}
	}
	t.Fatal("no leader")
	return ""
}

// What is mirrored is on each other bus once, under the name of the node it comes from, and not mirrored again.
func testEventMirror(t *testing.T, c *lab.Cluster) {
	const tag = "lab/mirror/x"
	_, err := c.Nodes[0].Master.Pub(t.Context(), c.Minions[0].ID, "event.send", tag)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the event on every bus", func(context.Context) error {
		runs, err := counted(c)
		if err != nil {
			return err
		}
		for _, n := range c.Nodes {
			if len(mirrored(runs[n.Name])) == 0 {
				return fmt.Errorf("%s has not seen it: %v", n.Name, runs)
			}
		}
		return nil
	}))
	runs := awaitCounts(t, c, map[string]int{tag: 1})
	owner := ""
	for name, r := range runs {
		if r[tag] == 1 {
			owner = name
		}
	}
	for name, r := range runs {
		seen := mirrored(r)
		switch {
		case name == owner && len(seen) == 1 && seen[tag] == 1:
		case name != owner && len(seen) == 1 && seen["cluster/event/"+owner+"/"+tag] == 1:
		default:
			t.Errorf("%s, event of %s: %v", name, owner, seen)
		}
	}
}

// mirrored picks what the test of the mirror has counted.
func mirrored(runs map[string]int) map[string]int {
	out := map[string]int{}
	for tag, n := range runs {
		if strings.Contains(tag, "lab/mirror/") {
			out[tag] = n
		}
	}
	return out
}

// A salt-master that hangs does not read what it is given, and its socket takes it all the same. When it is killed, the
// one that comes after it fires that.
func testEventsOfHungMaster(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	node, m := c.Nodes[1], c.Minions[0]
	var tags []string
	for i := range 40 {
		tags = append(tags, fmt.Sprintf("lab/count/all/hung-%d", i))
	}
	labtest.Must(t, c.Answering(ctx, node))
	_, err := c.Nodes[0].Master.Pub(ctx, m.ID, "saltutil.sync_modules")
	labtest.Must(t, err)
	bus := listen(t, node.Master)
	bus.fence(ctx, t)
	const fired = "saltcluster_master_bus_fired_events_total"
	before := metricSum(t, node, fired)
	labtest.Must(t, node.Master.Pause())
	got, err := c.Nodes[0].Master.Pub(ctx, m.ID, "labmod.fire", strings.Join(tags, ","))
	if err == nil {
		err = lab.AnsweredBy(got, m.ID)
	}
	if err == nil {
		err = lab.Eventually(ctx, 30*time.Second, "the events to be written to the master's socket",
			func(context.Context) error {
				if n := metricSum(t, node, fired) - before; n < float64(len(tags)) {
					return fmt.Errorf("%v of %d", n, len(tags))
				}
				return nil
			})
	}
	labtest.Must(t, node.Master.Kill())
	labtest.Must(t, err)
	labtest.Must(t, node.Master.Start(ctx))
	labtest.Must(t, node.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the events on the bus of the new master",
		func(context.Context) error {
			for _, tag := range tags {
				if bus.count(node.Name, tag) == 0 {
					return fmt.Errorf("%s is not on it", tag)
				}
			}
			return nil
		}))
	bus.fence(ctx, t)
	for _, tag := range tags {
		if n := bus.count(node.Name, tag); n != 1 {
			t.Errorf("%s is on the bus %d times", tag, n)
		}
	}
	labtest.Must(t, c.Answering(ctx, node))
}

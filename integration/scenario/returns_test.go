//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// readJob prints what Salt's own code finds in a job's directory; no master need be up.
const readJob = `
import json, os, sys
import salt.config, salt.payload, salt.utils.jid
opts = salt.config.master_config(sys.argv[1])
top = salt.utils.jid.jid_dir(sys.argv[2], os.path.join(opts["cachedir"], "jobs"), opts["hash_type"])
found = {}
for name in os.listdir(top) if os.path.isdir(top) else []:
    path = os.path.join(top, name, "return.p")
    if os.path.isfile(path):
        with open(path, "rb") as f:
            found[name] = salt.payload.loads(f.read())["return"]
print(json.dumps(found))
`

// cached is what the job cache of a node holds of a job.
func cached(ctx context.Context, n *lab.Node, jid string) (map[string]any, error) {
	res, err := n.Master.Run(ctx, "python", "-c", readJob, n.Master.ConfigDir+"/master", jid)
	if err == nil {
		err = res.Err()
	}
	var found map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(res.Stdout), &found)
	}
	return found, err
}

var jidPrinted = regexp.MustCompile(`\b20\d{18}(_\d+)?\b`)

// async publishes a job and returns its id.
func async(t *testing.T, n *lab.Node, fun string, args ...string) string {
	t.Helper()
	return asyncOn(t, n, []string{"*"}, fun, args...)
}

// asyncTo does it for some minions.
func asyncTo(t *testing.T, n *lab.Node, minions []*lab.Minion, fun string, args ...string) string {
	t.Helper()
	return asyncOn(t, n, []string{"-L", strings.Join(idsOf(minions), ",")}, fun, args...)
}

func asyncOn(t *testing.T, n *lab.Node, target []string, fun string, args ...string) string {
	t.Helper()
	res, err := n.Master.Run(t.Context(), "salt", slices.Concat([]string{"--async"}, target, []string{fun}, args)...)
	labtest.Must(t, err)
	jid := jidPrinted.FindString(res.Stdout)
	if jid == "" {
		t.Fatalf("no job id in %s", res.Output())
	}
	return jid
}

// inCache waits until a node's job cache has the returns of all minions.
func inCache(t *testing.T, c *lab.Cluster, n *lab.Node, jid string, within time.Duration) {
	t.Helper()
	inCacheOf(t, c, n, jid, within, c.IDs()...)
}

// inCacheOf waits for the returns of some.
func inCacheOf(t *testing.T, c *lab.Cluster, n *lab.Node, jid string, within time.Duration, ids ...string) {
	t.Helper()
	err := lab.Eventually(t.Context(), within, jid+" in the job cache of "+n.Name, func(ctx context.Context) error {
		found, err := cached(ctx, n, jid)
		if err != nil {
			return err
		}
		return lab.AnsweredBy(found, ids...)
	})
	if err != nil {
		tellOfJob(t, c, jid)
	}
	labtest.Must(t, err)
}

// tellOfJob logs what the nodes know of a job that did not end, and what its minions' processes do.
func tellOfJob(t *testing.T, c *lab.Cluster, jid string) {
	t.Helper()
	for _, n := range c.Nodes {
		for _, args := range [][]string{{"jobs", "show", jid}, {"status"}} {
			if res, err := n.Daemon.Ctl(t.Context(), args...); err == nil {
				t.Logf("%s: %s:\n%s", n.Name, strings.Join(args, " "), res.Output())
			}
		}
	}
	for _, m := range c.Minions {
		t.Log(m.Tree())
	}
}

// returnsOf is what a node says of returns.
func returnsOf(ctx context.Context, n *lab.Node) (adminapi.Returns, error) {
	var st adminapi.Status
	if err := n.Daemon.CtlJSON(ctx, &st, "status"); err != nil {
		return adminapi.Returns{}, err
	}
	if st.Node.Returns == nil {
		return adminapi.Returns{}, fmt.Errorf("%s says nothing of returns", n.Name)
	}
	return *st.Node.Returns, nil
}

// drained waits until nothing waits in a node's journals.
func drained(t *testing.T, n *lab.Node, within time.Duration) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, "the journals of "+n.Name, func(ctx context.Context) error {
		r, err := returnsOf(ctx, n)
		if err != nil {
			return err
		}
		for _, j := range r.Journals {
			for _, w := range j.Waiting {
				if w.Records > 0 {
					return fmt.Errorf("%d for %s in %s: %s", w.Records, w.Consumer, j.Name, w.Error)
				}
			}
		}
		return nil
	}))
}

// outcomes counts what a node did with returns.
func outcomes(t *testing.T, n *lab.Node, outcome string) float64 {
	t.Helper()
	return metric(t, n, func(line string) bool {
		return strings.HasPrefix(line, `saltcluster_minion_returns_total{outcome="`+outcome+`"`)
	})
}

// Returns are taken without the master's Python, and its tools find them.
func testReturns(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for _, n := range c.Nodes {
		r, err := returnsOf(ctx, n)
		labtest.Must(t, err)
		for _, p := range r.Paths {
			if p.Path != adminapi.PathNative {
				t.Errorf("%s: %s goes to the master: %s", n.Name, p.Command, p.Reason)
			}
		}
		taken, python := outcomes(t, n, "taken"), outcomes(t, n, "needs_python")
		jid := async(t, n, "test.arg", "one", "two=2")
		inCache(t, c, n, jid, time.Minute)
		for _, tool := range []string{"jobs.lookup_jid", "jobs.list_job", "jobs.print_job"} {
			res, err := n.Master.Run(ctx, "salt-run", "--out=json", tool, jid)
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
			for _, id := range c.IDs() {
				if !strings.Contains(res.Stdout, `"`+id+`"`) {
					t.Errorf("%s: %s does not tell of %s: %s", n.Name, tool, id, res.Stdout)
				}
			}
		}
		if got := outcomes(t, n, "taken") - taken; int(got) < len(c.IDs()) {
			t.Errorf("%s took %v returns itself, of %d", n.Name, got, len(c.IDs()))
		}
		if got := outcomes(t, n, "needs_python") - python; got != 0 {
			t.Errorf("%s left %v returns to Python", n.Name, got)
		}
	}
}

// published returns a function that waits until that many publications more have been handed to the subscribers of
// every node.
func published(t *testing.T, c *lab.Cluster) func(more float64) {
	t.Helper()
	const name = "saltcluster_fanout_publications_total"
	var before []float64
	for _, n := range c.Nodes {
		before = append(before, metricSum(t, n, name))
	}
	return func(more float64) {
		t.Helper()
		for i, n := range c.Nodes {
			labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, "publications on "+n.Name, func(context.Context) error {
				if got := metricSum(t, n, name) - before[i]; got < more {
					return fmt.Errorf("%v of %v", got, more)
				}
				return nil
			}))
		}
	}
}

// The publisher's salt-master dies in the middle of a job: its minions are acknowledged, and its job cache has all of
// it before the master is back; then the job is found, and the events follow.
func testMasterKilledMidJob(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	marks := logSizes(t, c)
	labtest.Must(t, c.Answering(ctx, c.Nodes[0])) // a minion that is away gets no job from before its twin signs in
	asker := twin(t, c, c.Minions[0])
	for i, n := range c.Nodes {
		out := published(t, c)
		jid := async(t, n, "cmd.run", "sleep 3; echo done", inShell)
		other := asker.publishes(t, n, "test.sleep", 2)
		out(2) // a master answers before it publishes: killed in between, it publishes nothing
		labtest.Must(t, n.Master.Kill())
		asker.returned(t, c, c.Nodes[(i+1)%len(c.Nodes)], other, 90*time.Second) // asked while the master is down
		inCache(t, c, n, jid, 90*time.Second)
		labtest.Must(t, n.Master.Start(ctx))
		labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
		labtest.Must(t, c.Answering(ctx, n))
		drained(t, n, time.Minute)
		res, err := n.Master.Run(ctx, "salt-run", "--out=json", "jobs.lookup_jid", jid)
		labtest.Must(t, err)
		if got := strings.Count(res.Stdout, `"done"`); got != len(c.IDs()) {
			t.Errorf("%s: jobs.lookup_jid tells of %d minions: %s", n.Name, got, res.Output())
		}
	}
	for _, m := range c.Minions {
		// Not "failed to return the job information": a 3007 minion's job process misses the word of its own main process now
		// and then, and says so, with a bare master, too.
		if log := since(t, m, marks[m.ID]); strings.Contains(log, "SaltReqTimeoutError") ||
			strings.Contains(log, "Timeout encountered") {
			t.Errorf("%s was not acknowledged: %s", m.ID, log)
		}
	}
}

// keptFor waits until the other nodes keep the returns of all minions for a node.
func keptFor(t *testing.T, c *lab.Cluster, dead *lab.Node) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the others to keep its returns",
		func(ctx context.Context) error {
			var kept uint64
			for _, n := range c.Nodes {
				if n == dead {
					continue
				}
				r, err := returnsOf(ctx, n)
				if err != nil {
					return err
				}
				for _, j := range r.Journals {
					if j.Name == "to."+dead.Name {
						kept += j.Waiting[0].Records
					}
				}
			}
			if kept < uint64(len(c.IDs())) {
				return fmt.Errorf("%d of %d", kept, len(c.IDs()))
			}
			return nil
		}))
}

// eventsWaiting is how many returns wait in a node's journal for its master's bus.
func eventsWaiting(ctx context.Context, n *lab.Node) (waiting uint64, err error) {
	r, err := returnsOf(ctx, n)
	for _, j := range r.Journals {
		for _, w := range j.Waiting {
			if j.Name == "own" && w.Consumer == "events" {
				waiting = w.Records
			}
		}
	}
	return waiting, err
}

// The publisher's saltclusterd dies in the middle of a job, its master with it: the others take the job's returns, have
// them in their job caches, and hand them over when it is back, whose bus gets their events.
func testPublisherKilledMidJob(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	dead := c.Nodes[1]
	labtest.Must(t, c.Answering(ctx, dead)) // as above
	asker := twin(t, c, c.Minions[0])
	published := asker.publishes(t, dead, "test.ping")
	inCache(t, c, c.Nodes[0], published, time.Minute)
	jid := async(t, dead, "cmd.run", "sleep 8; echo done", inShell)
	labtest.Must(t, dead.Daemon.Kill())
	labtest.Must(t, dead.Master.Kill())
	asker.returned(t, c, c.Nodes[0], published, time.Minute) // by another node, and its replica of the job
	keptFor(t, c, dead)
	for _, n := range []*lab.Node{c.Nodes[0], c.Nodes[2]} {
		inCache(t, c, n, jid, time.Minute)
	}
	// One that keeps some dies, too, and loses none.
	labtest.Must(t, c.Nodes[0].Daemon.Kill())
	labtest.Must(t, c.Nodes[0].Daemon.Start(ctx))
	labtest.Must(t, dead.Daemon.Start(ctx))
	labtest.Must(t, dead.Daemon.Serving(ctx, 2*time.Minute))
	inCache(t, c, dead, jid, time.Minute)
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the events to wait for the bus", func(ctx context.Context) error {
		n, err := eventsWaiting(ctx, dead)
		if err == nil && n < uint64(len(c.IDs())) {
			err = fmt.Errorf("%d of %d", n, len(c.IDs()))
		}
		return err
	}))
	labtest.Must(t, dead.Master.Start(ctx))
	labtest.Must(t, dead.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, c.Answering(ctx, dead))
	for _, n := range c.Nodes {
		drained(t, n, time.Minute)
	}
}

// A node dies in the middle of a job and is removed: the ring's owner of the job has its returns.
func testRemovedMidJob(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	dead, rest := c.Nodes[1], []*lab.Node{c.Nodes[0], c.Nodes[2]}
	before := async(t, dead, "test.arg", "of", "the", "dead")
	for _, n := range c.Nodes {
		inCache(t, c, n, before, time.Minute)
	}
	jid := async(t, dead, "cmd.run", "sleep 8; echo done", inShell)
	labtest.Must(t, dead.Daemon.Kill())
	labtest.Must(t, dead.Master.Kill())
	keptFor(t, c, dead)
	taken := func() float64 { return outcomes(t, rest[0], "accepted") + outcomes(t, rest[1], "accepted") }
	had := taken()
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the removal", func(ctx context.Context) error {
		res, err := rest[0].Daemon.Ctl(ctx, "remove", "--yes", "--force", dead.Name)
		if err != nil {
			return err
		}
		return res.Err()
	}))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the successor's job cache", func(ctx context.Context) error {
		var errs []error
		for _, n := range rest {
			found, err := cached(ctx, n, jid)
			if err == nil {
				err = lab.AnsweredBy(found, c.IDs()...)
			}
			if err == nil {
				return nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
		}
		return errors.Join(errs...)
	}))
	for _, n := range rest {
		drained(t, n, time.Minute)
	}
	if n := taken() - had; n < float64(len(c.IDs())) { // the copies that both had before were not taken for it
		t.Errorf("the successor has taken %v returns, and fired their events", n)
	}
	said := sameJobs(t, 2*time.Minute, rest, before, jid) // what a master that is gone has published
	got, _ := said[before]["lookup_jid"].(map[string]any)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
}

// A node dies with events in its journal, for its master is down: they are fired once both are back.
func testEventsFollow(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	n := c.Nodes[2]
	jid := async(t, n, "cmd.run", "sleep 3; echo done", inShell)
	labtest.Must(t, n.Master.Kill())
	inCache(t, c, n, jid, time.Minute)
	labtest.Must(t, n.Daemon.Kill())
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	waiting, err := eventsWaiting(ctx, n)
	labtest.Must(t, err)
	if waiting < uint64(len(c.IDs())) {
		t.Errorf("%d returns wait for the bus, not %d", waiting, len(c.IDs()))
	}
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	drained(t, n, time.Minute)
	labtest.Must(t, c.Answering(ctx, n))
}

// startAnew starts a node anew, with a master that has these settings, too.
func startAnew(t *testing.T, c *lab.Cluster, n *lab.Node, over lab.Settings) {
	t.Helper()
	ctx := t.Context()
	labtest.Must(t, n.Daemon.Stop(ctx))
	labtest.Must(t, n.Master.Stop(ctx))
	labtest.Must(t, n.Master.Configure(clusterMasters, over))
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, c.Answering(ctx, n))
}

// A master whose options only Python can follow gets its returns itself, status says why, and what comes while it is
// down reaches it later.
func testReturnsOfPython(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	n := c.Nodes[0]
	startAnew(t, c, n, lab.Settings{"master_stats": true})
	defer startAnew(t, c, n, nil)
	r, err := returnsOf(ctx, n)
	labtest.Must(t, err)
	for _, p := range r.Paths {
		if p.Path != adminapi.PathMaster || !strings.Contains(p.Reason, "master_stats") {
			t.Errorf("%s: %+v", n.Name, p)
		}
	}
	jid := async(t, n, "cmd.run", "sleep 3; echo done", inShell)
	labtest.Must(t, n.Master.Kill())
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "returns to be kept", func(context.Context) error {
		if got := outcomes(t, n, "deferred"); int(got) < len(c.IDs()) {
			return fmt.Errorf("%v of %d", got, len(c.IDs()))
		}
		return nil
	}))
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	inCache(t, c, n, jid, time.Minute)
	drained(t, n, time.Minute)
}

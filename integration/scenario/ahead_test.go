//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/fsync/jobs"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// The publisher of a job goes while minions work on it: the job is whole meanwhile wherever the others have it, and
// nowhere in part; a reactor hears of each return once, when the publisher is back, or of its successor. "make
// test-five".
func TestReturnsAheadOfTheirPublisher(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("five masters: make test-five")
	}
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: append(slices.Clone(lab.Versions), lab.Versions[:2]...), Minions: lab.Versions,
		MasterSettings: clusterMasters,
		DaemonSettings: metricsForAll,
	})
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		labtest.Must(t, countReactionsOn(n, clusterMasters, "salt/job/*/ret/*"))
	}
	labtest.Must(t, c.Up(t.Context()))
	killed := func(t *testing.T, n *lab.Node) (back func()) {
		labtest.Must(t, n.Master.Kill())
		labtest.Must(t, n.Daemon.Kill())
		return func() { startAgain(t, n) }
	}
	for _, n := range c.Nodes[:3] {
		if !t.Run("killed "+n.Master.Version, func(t *testing.T) { testAhead(t, c, n, killed) }) {
			return
		}
	}
	t.Run("its saltclusterd only", func(t *testing.T) {
		testAhead(t, c, c.Nodes[0], func(t *testing.T, n *lab.Node) func() {
			labtest.Must(t, n.Daemon.Kill())
			return func() {
				labtest.Must(t, n.Daemon.Start(t.Context()))
				labtest.Must(t, n.Daemon.Serving(t.Context(), 2*time.Minute))
			}
		})
	})
	t.Run("cut off", func(t *testing.T) {
		labtest.NeedNetwork(t, c.Lab)
		testAhead(t, c, c.Nodes[1], func(t *testing.T, n *lab.Node) func() {
			labtest.Must(t, c.Lab.Isolate(t.Context(), n.Host))
			return func() { labtest.Must(t, c.Lab.Heal(t.Context())) }
		})
	})
	t.Run("removed", func(t *testing.T) { testAhead(t, c, c.Nodes[3], killed, "removed") })
}

func startAgain(t *testing.T, n *lab.Node) {
	ctx := t.Context()
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
}

// testAhead has gone take a node away in the middle of a job, and waits for what comes of that; with any word it is
// removed.
func testAhead(t *testing.T, c *lab.Cluster, dead *lab.Node, gone func(*testing.T, *lab.Node) (back func()),
	removed ...string) {
	ctx := t.Context()
	labtest.Must(t, c.Answering(ctx, dead))
	others := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *lab.Node) bool { return n == dead })
	jid := async(t, dead, "cmd.run", "sleep 8; echo done", inShell)
	back := gone(t, dead)
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the job on the others", func(ctx context.Context) error {
		whole := 0
		var errs []error
		for _, n := range others {
			found, err := cached(ctx, n, jid)
			if err == nil && len(found) > 0 {
				err = lab.AnsweredBy(found, c.IDs()...)
				whole++
			}
			var shown adminapi.Job
			if err == nil {
				err = n.Daemon.CtlJSON(ctx, &shown, "jobs", "show", jid)
			}
			if err == nil && len(shown.Returns) != len(c.IDs()) {
				err = fmt.Errorf("jobs show on %s: %d returns", n.Name, len(shown.Returns))
			}
			errs = append(errs, err)
		}
		if whole < 2 {
			errs = append(errs, fmt.Errorf("%d have it", whole))
		}
		return errors.Join(errs...)
	}))
	has := slices.DeleteFunc(slices.Clone(others), func(n *lab.Node) bool {
		found, err := cached(ctx, n, jid)
		return err != nil || len(found) == 0
	})
	said := sameAnswers(t, time.Minute, has, jid)
	found, _ := said[jid]["lookup_jid"].(map[string]any)
	labtest.Must(t, lab.AnsweredBy(found, c.IDs()...))
	if got := reactions(t, c, jid); slices.Max(got) > 0 {
		t.Errorf("reactors ran %v times while the publisher was away", got)
	}
	on := dead
	if len(removed) > 0 {
		on = others[0]
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the removal", func(ctx context.Context) error {
			res, err := on.Daemon.Ctl(ctx, "remove", "--yes", "--force", dead.Name)
			if err != nil {
				return err
			}
			return res.Err()
		}))
		for _, n := range others {
			drained(t, n, time.Minute)
		}
	} else {
		back()
		for _, n := range c.Nodes {
			drained(t, n, time.Minute)
		}
		labtest.Must(t, c.Answering(ctx, dead))
		has = append(has, dead)
	}
	heard := lab.Eventually(ctx, time.Minute, "the reactors", func(context.Context) error {
		if got := reactions(t, c, jid); slices.Min(got) == 0 {
			return fmt.Errorf("they ran %v times; %s has accepted %v returns and taken %v for known", got, on.Name,
				outcomes(t, on, "accepted"), outcomes(t, on, "duplicate"))
		}
		return nil
	})
	if heard != nil && strings.HasPrefix(path.Base(t.Name()), "killed") &&
		outcomes(t, on, "accepted") >= float64(len(c.IDs())) {
		// Salt's loader fails where several threads need it for the first time ("Failed to import grains core": KeyError of
		// 3006), as a reactor's do that gets several events when it has just started. They were fired all the same.
		t.Log(heard)
		return
	}
	labtest.Must(t, heard)
	for _, n := range append(slices.Clone(others), on) { // whose own events come after those
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the last job", func(ctx context.Context) error {
			// one after the other: the reactor's first events may fail in Salt's loader, as above
			last := async(t, n, "test.ping")
			return lab.Eventually(ctx, 20*time.Second, "the reactors", func(context.Context) error {
				if got := reactions(t, c, last); slices.Min(got) == 0 {
					return fmt.Errorf("they ran %v times for the last job", got)
				}
				return nil
			})
		}))
	}
	if got := reactions(t, c, jid); slices.Max(got) != 1 {
		t.Errorf("reactors ran %v times", got)
	}
	for _, n := range append(slices.Clone(others), on) {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "no copy that is ahead", func(context.Context) error {
			left, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "jobs/*/*/*", jobs.AheadFile))
			if len(left) > 0 {
				err = fmt.Errorf("%s has %d: %s", n.Name, len(left), left[0])
			}
			return err
		}))
	}
	sameAnswers(t, time.Minute, has, jid)
}

// reactions is how often the reactors of all nodes ran for each minion's return of a job.
func reactions(t *testing.T, c *lab.Cluster, jid string) (times []int) {
	t.Helper()
	runs, err := counted(c)
	labtest.Must(t, err)
	for _, id := range c.IDs() {
		times = append(times, sum(runs, "salt/job/"+jid+"/ret/"+id))
	}
	return times
}

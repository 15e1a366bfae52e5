//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// Of five nodes three keep a job, and the one that published it. The others answer for it through jobs show, also
// when the publisher is gone; their salt-run does not know it. "make test-five".
func TestFiveNodes(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("five masters: make test-five")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: append(slices.Clone(lab.Versions), lab.Versions[:2]...), Minions: lab.Versions,
		MasterSettings: clusterMasters,
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	publisher, watcher := c.Nodes[0], c.Nodes[1]
	var job adminapi.JobRow
	var without []*lab.Node
	labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, "a job of which two nodes have no copy",
		func(ctx context.Context) error {
			jid := async(t, publisher, "test.arg", "one", "two=2")
			inCache(t, c, publisher, jid, time.Minute)
			return lab.Eventually(ctx, 30*time.Second, "its copies", func(ctx context.Context) error {
				var err error
				if job, err = listed(ctx, watcher, jid); err != nil {
					return err
				}
				without = slices.DeleteFunc(slices.Clone(c.Nodes),
					func(n *lab.Node) bool { return slices.Contains(job.Nodes, n.Name) })
				if len(job.Nodes) < 3 || job.Returned != len(c.IDs()) {
					return fmt.Errorf("%+v", job)
				}
				return nil
			})
		}))
	if len(without) == 0 || len(without) > 2 || len(job.Nodes) > 4 {
		t.Fatalf("%+v is on all but %d nodes", job, len(without))
	}
	holders := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *lab.Node) bool { return slices.Contains(without, n) })
	sameJobs(t, time.Minute, holders, job.JID)
	nobodyKnows := func(n *lab.Node) {
		t.Helper()
		said, err := jobsOn(ctx, n, job.JID)
		labtest.Must(t, err)
		if got := text(said[job.JID]["lookup_jid"]); got != "{}" {
			t.Errorf("lookup_jid on %s, which has no copy: %s", n.Name, got)
		}
		if got := said[job.JID]["list_jobs"]; got != nil {
			t.Errorf("list_jobs on %s, which has no copy: %s", n.Name, text(got))
		}
	}
	shown := func(n *lab.Node, elsewhere bool) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "jobs show on "+n.Name, func(ctx context.Context) error {
			var got adminapi.Job
			if err := n.Daemon.CtlJSON(ctx, &got, "jobs", "show", job.JID); err != nil {
				return err
			}
			if got.Function != "test.arg" || got.Target != "*" || got.User == nil || len(got.Returns) != len(c.IDs()) ||
				elsewhere && got.Node == n.Name {
				return fmt.Errorf("%+v", got)
			}
			return nil
		}))
	}
	for _, n := range without {
		nobodyKnows(n)
		shown(n, true)
	}
	verified := func(n *lab.Node) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "no difference", func(ctx context.Context) error {
			v, code, err := verify(ctx, n)
			if err == nil && code != 0 {
				err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
			}
			return err
		}))
	}
	verified(watcher)
	labtest.Must(t, errors.Join(publisher.Daemon.Kill(), publisher.Master.Kill()))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the removal", func(ctx context.Context) error {
		res, err := watcher.Daemon.Ctl(ctx, "remove", "--yes", "--force", publisher.Name)
		if err != nil {
			return err
		}
		return res.Err()
	}))
	for _, n := range without {
		shown(n, false) // by those that are left, or from the copy that they have just given it
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "three copies among four", func(ctx context.Context) error {
		row, err := listed(ctx, watcher, job.JID)
		if err == nil && len(row.Nodes) < 3 {
			err = fmt.Errorf("%+v", row)
		}
		return err
	}))
	verified(watcher)
}

// listed is what a node's list tells of a job.
func listed(ctx context.Context, n *lab.Node, jid string) (adminapi.JobRow, error) {
	var list adminapi.JobList
	if err := n.Daemon.CtlJSON(ctx, &list, "jobs", "list", "--n", "200"); err != nil {
		return adminapi.JobRow{}, err
	}
	i := slices.IndexFunc(list.Jobs, func(j adminapi.JobRow) bool { return j.JID == jid })
	if i < 0 {
		return adminapi.JobRow{}, errors.New("the job is on no list")
	}
	return list.Jobs[i], nil
}

//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// Masters of all versions with keys, roots and jobs on one share.
func TestShared(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-shared")
	}
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.Minions, spec.Shared, spec.ShareMounts = lab.Versions, true, true
	spec.MasterSettings, spec.DaemonSettings = clusterMasters, maps.Clone(metricsForAll)
	spec.DaemonSettings["cluster_wall"] = wallEnforced
	c, err := l.NewCluster(t.Context(), spec)
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	minding := newLegal(c)
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"keys", testKeys},
		{"jobs are everybody's", testSharedJobs},
		{"the keeper of the keys is killed", testKeeperKilled},
		{"the share hangs on one node", testOneHungShare},
		{"one node has another share", testOtherShare},
		{"the share hangs", testHungShare},
		{"keys after it", testKeys},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(60))
		}
		minding.check(t, s.name, false)
	}
}

// What one master has published every other finds.
func testSharedJobs(t *testing.T, c *lab.Cluster) {
	jid := async(t, c.Nodes[0], "test.ping")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "job on "+n.Name, func(ctx context.Context) error {
			res, err := n.Master.Run(ctx, "salt-run", "--out", "json", "jobs.lookup_jid", jid)
			if err != nil {
				return err
			}
			for _, id := range c.IDs() {
				if !strings.Contains(res.Stdout, id) {
					return fmt.Errorf("without %s: %s", id, res.Stdout)
				}
			}
			return nil
		}))
	}
}

// Another node goes on where the keeper has stopped, and nothing comes back.
func testKeeperKilled(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	i := keeperOf(t, c)
	keeper, other := c.Nodes[i], c.Nodes[(i+1)%len(c.Nodes)]
	m, err := c.Minions[0].Host().NewMinion(lab.Versions[1], "latecomer", c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	defer func() { _ = m.Kill() }()
	keyIs(t, c, "latecomer", "minions_pre", time.Minute)
	labtest.Must(t, keeper.Daemon.Kill())
	change := func(option, state string) {
		t.Helper()
		res, err := other.Master.Run(ctx, "salt-key", "-y", option, "latecomer")
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, "latecomer", state, 10*time.Second)
	}
	change("-a", "minions")
	labtest.Must(t, lab.Answering(ctx, other.Master, append(c.IDs(), "latecomer")...)) // so consensus has heard of it
	// stopping takes long: it waits for answers that the keeper owes it
	labtest.Must(t, m.Kill())
	change("-d", "")
	labtest.Must(t, keeper.Daemon.Start(ctx))
	labtest.Must(t, keeper.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
	keyIs(t, c, "latecomer", "", time.Second)
}

// Nodes whose share hangs say so, are not ready, and are well when it answers again.
func testHungShare(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	if err := c.Share.Hang(); err != nil {
		t.Skip(err)
	}
	defer func() { labtest.Must(t, c.Share.Answer()) }()
	for _, n := range c.Nodes {
		shareIs(t, n, time.Minute, "does not answer")
	}
	labtest.Must(t, c.Share.Answer())
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
}

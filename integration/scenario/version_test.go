//go:build integration

package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// Salt is upgraded on one node from 3006 to 3008, and taken back: saltclusterd notices without being told, serves the
// master as what it is now, and no minion loses its connection or signs in.
func testVersionChange(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	node := c.Nodes[1]
	old := node.Master.Version
	labtest.Must(t, c.Answering(ctx, node))
	marks, connections := logSizes(t, c), publishConnections(t, c)
	pinged := pinging(ctx, c.Nodes[0], c.IDs())
	for _, version := range []string{"3008.3", old} {
		labtest.Must(t, node.Master.Stop(ctx))
		labtest.Must(t, node.Master.ChangeVersion(version))
		labtest.Must(t, node.Master.Start(ctx))
		labtest.Must(t, node.Master.WaitReady(ctx, 3*time.Minute))
		began := time.Now()
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "Salt "+version+" to be noticed", func(ctx context.Context) error {
			all, err := c.Nodes[0].Daemon.Members(ctx)
			if err != nil {
				return err
			}
			for _, m := range all.Members {
				if m.ID == node.Name && m.SaltVersion != version {
					return fmt.Errorf("%s is said to run Salt %s", m.ID, m.SaltVersion)
				}
			}
			return nil
		}))
		t.Logf("Salt %s noticed %s after it was ready", version, time.Since(began).Round(time.Millisecond))
		labtest.Must(t, c.Answering(ctx, node))
		// Its cache of grains has another layout now; targeting by grain works all the same.
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "minions by grain from "+node.Name, func(ctx context.Context) error {
			got, err := node.Master.Pub(ctx, "-G", "kernel:Linux", "test.ping")
			if err != nil {
				return err
			}
			return lab.AnsweredBy(got, c.IDs()...)
		}))
		got, err := node.Master.Pub(ctx, "*", "pillar.items")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	}
	rounds, failures := pinged()
	t.Logf("%d rounds of test.ping from %s", rounds, c.Nodes[0].Name)
	if len(failures) > 0 {
		t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
	}
	if now := publishConnections(t, c); now != connections {
		t.Errorf("%d publish connections were made anew", now-connections)
	}
	quietLogs(t, c, marks)
}

// publishConnections counts the connections to 4505 that HAProxy has ever made.
func publishConnections(t *testing.T, c *lab.Cluster) (n int) {
	t.Helper()
	for _, node := range c.Nodes {
		states, err := c.LB.Servers(t.Context(), node.Name)
		labtest.Must(t, err)
		n += states["salt-publish"].Total
	}
	return n
}

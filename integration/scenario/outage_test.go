//go:build integration

package scenario

import (
	"context"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// longOutage is longer than stock minions of any version try one sign-in (auth_tries of auth_timeout).
const longOutage = 15 * time.Minute

// TestOutage has every node away for so long that minions have given up what they tried at first: the load
// balancer takes their connections, and has nobody to pass them on to. When there is somebody again all of them come
// back by themselves. It runs with "make test-idle".
func TestOutage(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes eighteen minutes: make test-idle")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: []string{"3008.3", "3006.28"}, Minions: append(lab.Versions, lab.Versions...),
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15}, DaemonSettings: metricsForAll,
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Stop(ctx))
	}
	select {
	case <-ctx.Done():
	case <-time.After(longOutage):
	}
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Start(ctx))
	}
	began := time.Now()
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, "all minions to answer",
			func(ctx context.Context) error { return c.Answering(ctx, n) }))
	}
	t.Logf("all answer again after %s", time.Since(began).Round(time.Second))
}

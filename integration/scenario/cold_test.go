//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// All nodes are new, know each other by cluster_peers, and somebody runs bootstrap on all of them at the same moment:
// one founds the cluster, the others join it by themselves. COLD is how often.
func TestColdStart(t *testing.T) {
	rounds := 3
	if text := os.Getenv("COLD"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		labtest.Must(t, err)
	}
	l := labtest.New(t, lab.Options{})
	ctx := t.Context()
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions,
		Minions: []string{lab.Versions[0], lab.Versions[2]}})
	labtest.Must(t, err)
	var peers []string
	for _, n := range c.Nodes {
		peers = append(peers, n.Addr)
	}
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Configure(lab.Settings{"cluster_peers": peers}))
	}
	for round := range rounds {
		if round > 0 {
			forgetAll(t, c)
		}
		coldStart(t, c)
	}
	for _, n := range c.Nodes {
		labtest.Must(t, n.Master.Start(ctx))
	}
	for _, n := range c.Nodes {
		labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
		labtest.Must(t, n.Daemon.Serving(ctx, 3*time.Minute))
	}
	labtest.Must(t, c.StartEdge(ctx))
	labtest.Must(t, c.AcceptKeys(ctx))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
}

// coldStart starts all daemons and runs bootstrap on all.
func coldStart(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx := t.Context()
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Start(ctx))
	}
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.WaitReady(ctx, time.Minute))
	}
	said := make([]lab.Result, len(c.Nodes))
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		all.Go(func() { said[i], _ = n.Daemon.Ctl(ctx, "bootstrap", "--wait=false") })
	}
	all.Wait()
	born := 0
	for i, res := range said {
		switch {
		case res.Code == 0:
			born++
		case !strings.Contains(res.Stderr, "saltclusterctl join") && !strings.Contains(res.Stderr, "already a member"):
			t.Errorf("%s: exit code %d, %s", c.Nodes[i].Name, res.Code, res.Output())
		}
	}
	if born != 1 {
		t.Fatalf("%d clusters were founded: %+v", born, said)
	}
	var first string
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, n.Name+" to be a member", func(ctx context.Context) error {
			all, err := n.Daemon.Members(ctx)
			if err == nil && len(all.Members) < len(c.Nodes) {
				err = fmt.Errorf("%d members", len(all.Members))
			}
			return err
		}))
		pem, err := os.ReadFile(n.Master.PKIDir() + "/master.pem")
		labtest.Must(t, err)
		if first == "" {
			first = string(pem)
		}
		if string(pem) != first {
			t.Errorf("%s has another identity", n.Name)
		}
	}
}

// forgetAll makes the nodes new again.
func forgetAll(t *testing.T, c *lab.Cluster) {
	t.Helper()
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Kill())
	}
	for _, n := range c.Nodes {
		for _, d := range []string{n.Daemon.StateDir, n.Master.PKIDir()} {
			labtest.Must(t, os.RemoveAll(d))
		}
		_ = os.Remove(n.Daemon.Socket) // or the lab takes it for a daemon that is up
		labtest.Must(t, os.MkdirAll(n.Daemon.StateDir, 0o750))
		labtest.Must(t, os.MkdirAll(n.Master.PKIDir(), 0o700))
	}
}

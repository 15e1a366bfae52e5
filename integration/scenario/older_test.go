//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// quiet is how long a cluster of two versions keeps its leader while nothing happens to it.
const quiet = 2 * time.Minute

// TestOlderProgram upgrades a cluster from the programs in SALTCLUSTER_OLD_BIN, node by node, and leaves it as it is for
// a while in between: members of both versions keep their leader, replace it when it is killed, and lose no job.
func TestOlderProgram(t *testing.T) {
	old := os.Getenv("SALTCLUSTER_OLD_BIN")
	if old == "" {
		t.Skip("older programs: make test-older OLD=DIRECTORY")
	}
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MasterSettings: clusterMasters,
	})
	labtest.Must(t, err)
	program := c.Nodes[0].Daemon.Spec.Argv[0]
	for _, n := range c.Nodes[:2] {
		n.Daemon.Spec.Argv[0] = filepath.Join(old, "saltclusterd")
	}
	labtest.Must(t, c.Up(t.Context()))
	for i, n := range c.Nodes[:2] {
		t.Run(fmt.Sprint(2-i, " older"), func(t *testing.T) {
			keepsLeader(t, c)
			replacesLeader(t, c)
			stop := pinging(t.Context(), c.Nodes[2], c.IDs())
			upgradeDaemon(t, n, "--binary", program)
			n.Daemon.Spec.Argv[0] = program
			labtest.Must(t, c.Whole(t.Context(), time.Minute))
			for _, n := range c.Nodes {
				labtest.Must(t, c.Answering(t.Context(), n))
			}
			rounds, failures := stop()
			t.Logf("%d rounds of test.ping", rounds)
			if rounds == 0 || len(failures) > 0 {
				t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
			}
		})
		if t.Failed() {
			t.Fatal(l.Tails(60))
		}
	}
	keepsLeader(t, c)
}

// agreedLeader returns the leader that the nodes which run agree on, and its term.
func agreedLeader(ctx context.Context, c *lab.Cluster) (leader *lab.Node, term uint64, err error) {
	for _, n := range c.Nodes {
		if !n.Daemon.Running() {
			continue
		}
		all, err := n.Daemon.Members(ctx)
		if err != nil {
			return nil, 0, err
		}
		var said *lab.Node
		for i, m := range all.Members {
			term = max(term, m.Term)
			if m.Leader {
				said = c.Nodes[i]
			}
		}
		if said == nil || leader != nil && said != leader || !said.Daemon.Running() {
			return nil, 0, errors.New("the nodes name no leader, or several")
		}
		leader = said
	}
	return leader, term, nil
}

func keepsLeader(t *testing.T, c *lab.Cluster) {
	t.Helper()
	leader, term, err := agreedLeader(t.Context(), c)
	labtest.Must(t, err)
	t.Logf("%s leads in term %d", leader.Name, term)
	stop := pinging(t.Context(), c.Nodes[0], c.IDs())
	for end := time.Now().Add(quiet); time.Now().Before(end); time.Sleep(time.Second) {
		if now, at, err := agreedLeader(t.Context(), c); err != nil || now != leader || at != term {
			t.Errorf("another election: term %d, not %d, %v", at, term, err)
			break
		}
	}
	rounds, failures := stop()
	t.Logf("%d rounds of test.ping, %d failed", rounds, len(failures))
	if len(failures) > 0 {
		t.Error(strings.Join(failures, "\n"))
	}
}

func replacesLeader(t *testing.T, c *lab.Cluster) {
	t.Helper()
	leader, term, err := agreedLeader(t.Context(), c)
	labtest.Must(t, err)
	labtest.Must(t, leader.Daemon.Kill())
	killed := time.Now()
	var next *lab.Node
	labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, "another leader", func(ctx context.Context) (err error) {
		var at uint64
		if next, at, err = agreedLeader(ctx, c); err == nil && at <= term {
			err = fmt.Errorf("still term %d", at)
		}
		return err
	}))
	t.Logf("%s leads %s after %s was killed", next.Name, time.Since(killed).Round(100*time.Millisecond), leader.Name)
	labtest.Must(t, leader.Daemon.Start(t.Context()))
	labtest.Must(t, c.Whole(t.Context(), time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(t.Context(), n))
	}
}

//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// clusterName is what minions of TestNames call.
const clusterName = "salt.example"

// TestNames: minions of three versions that call a name with the addresses of three nodes, without a load balancer. The
// name is not there at first, then one of its addresses is dead, then a node is killed. "make test-failback".
func TestNames(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-failback")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l) // each minion is looked for by the connections of its host
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters:        lab.Versions,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15},
		DaemonSettings: metricsForAll,
	})
	labtest.Must(t, err)
	s := &failbackSite{Cluster: c}
	for _, v := range lab.Versions {
		s.minion(t, v, "-name", lab.Settings{"master": clusterName, "retry_dns": 2})
	}
	labtest.Must(t, c.Form(ctx))
	for _, step := range []struct {
		name string
		test func(*testing.T, *failbackSite)
	}{
		{"a name that comes late", testNameComesLate},
		{"one of the addresses is dead", testNameOneIsDead},
		{"a node is killed", testNameNodeKilled},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

// resolve has all minions' hosts find these nodes under the name.
func (s *failbackSite) resolve(t *testing.T, nodes ...*lab.Node) {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	for _, m := range s.Minions {
		labtest.Must(t, m.Host().Resolve(clusterName, addrs...))
	}
}

func testNameComesLate(t *testing.T, s *failbackSite) {
	ctx := t.Context()
	for _, m := range s.Minions {
		labtest.Must(t, m.Start(ctx))
	}
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "minions to miss the name", func(context.Context) error {
		for _, m := range s.Minions {
			if !strings.Contains(since(t, m, 0), clusterName) {
				return fmt.Errorf("%s has not said that it does not find %s", m.ID, clusterName)
			}
		}
		return nil
	}))
	s.resolve(t, s.Nodes...)
	s.accept(t)
	s.answers(t, s.Nodes...)
	for _, m := range s.Minions {
		t.Logf("%s is at %s", m.ID, s.at(t, m))
	}
}

// restart stops minions and starts them. One of 3007 does not always end within 30 s of a SIGTERM, and is killed then.
func (s *failbackSite) restart(t *testing.T, minions []*lab.Minion) {
	t.Helper()
	for _, m := range minions {
		if err := m.Stop(t.Context()); err != nil {
			t.Log(err)
		}
		labtest.Must(t, m.Start(t.Context()))
	}
}

// testNameOneIsDead: at one of the addresses nobody listens. Which is tried first the resolver decides, by the numbers.
func testNameOneIsDead(t *testing.T, s *failbackSite) {
	for _, m := range s.Minions {
		labtest.Must(t, m.Host().Resolve(clusterName, m.Host().Addr, s.Nodes[0].Addr))
	}
	s.restart(t, s.Minions)
	s.areAt(t, 2*time.Minute, s.Nodes[0], s.Minions)
	s.answers(t, s.Nodes...)
}

// testNameNodeKilled kills the node where all minions are. What they do by themselves is logged and not judged: it is
// Salt's. Each that is started anew goes to another node.
func testNameNodeKilled(t *testing.T, s *failbackSite) {
	ctx, dead := t.Context(), s.Nodes[0]
	s.resolve(t, dead, s.Nodes[1])
	labtest.Must(t, errors.Join(dead.Daemon.Kill(), dead.Master.Kill()))
	err := lab.Eventually(ctx, 90*time.Second, "minions at another node", func(context.Context) error {
		var errs []error
		for _, m := range s.Minions {
			if s.at(t, m) != s.Nodes[1].Name {
				errs = append(errs, errors.New(m.ID))
			}
		}
		return errors.Join(errs...)
	})
	t.Logf("by themselves: %v", err)
	stayed := slices.DeleteFunc(slices.Clone(s.Minions), func(m *lab.Minion) bool { return s.at(t, m) == s.Nodes[1].Name })
	s.restart(t, stayed)
	s.areAt(t, 2*time.Minute, s.Nodes[1], s.Minions)
	s.answers(t, s.Nodes[1], s.Nodes[2])
}

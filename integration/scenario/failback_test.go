//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// failbackSite is two nodes without a load balancer. Each minion has a host of its own: to Salt's check whether a
// master is there (status.master) the connections of all its host's processes count.
type failbackSite struct {
	*lab.Cluster
	back, random []*lab.Minion
}

// TestFailback: minions of three versions with the nodes in their list of masters, in failover. Their node is killed,
// and they answer at the other; it comes back, and those with master_failback go back. "make test-failback".
func TestFailback(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-failback; TestAdoptFailover has failover without a way back")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l) // each minion is looked for by the connections of its host
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters:        []string{lab.Versions[2], lab.Versions[0]},
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15},
		DaemonSettings: metricsForAll,
	})
	labtest.Must(t, err)
	s := &failbackSite{Cluster: c}
	list := lab.Settings{
		"master": []string{c.Nodes[0].Addr, c.Nodes[1].Addr}, "master_type": "failover", "master_alive_interval": 5,
		"retry_dns": 0, "random_master": true, "master_tries": -1, // a minion of 3006 ends after one round else
	}
	for _, v := range lab.Versions {
		s.back = append(s.back, s.minion(t, v, "-back", list,
			lab.Settings{"master_failback": true, "master_failback_interval": 5}))
		s.random = append(s.random, s.minion(t, v, "-random", list))
	}
	labtest.Must(t, c.Form(ctx))
	for _, m := range c.Minions {
		labtest.Must(t, m.Start(ctx))
	}
	s.accept(t)
	for _, step := range []struct {
		name string
		test func(*testing.T, *failbackSite)
	}{
		{"each at one node", testFailbackFirst},
		{"a node is killed", testFailbackKilled},
		{"the node comes back", testFailbackBack},
		{"all nodes are killed", testFailbackAllKilled},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

func (s *failbackSite) minion(t *testing.T, version, kind string, over ...lab.Settings) *lab.Minion {
	t.Helper()
	id := "min" + version[2:4] + kind
	h, err := s.Lab.Host(t.Context(), kind[1:2]+version[2:4])
	labtest.Must(t, err)
	m, err := h.NewMinion(version, id, "", over...)
	labtest.Must(t, err)
	s.Minions = append(s.Minions, m)
	return m
}

// accept accepts all keys: those that showed themselves at the other node are known to the first, too.
func (s *failbackSite) accept(t *testing.T) {
	t.Helper()
	labtest.Must(t, s.AcceptKeys(t.Context()))
	for _, n := range s.Nodes {
		labtest.Must(t, s.Answering(t.Context(), n))
	}
}

// at is the node to which the minion's host is connected.
func (s *failbackSite) at(t *testing.T, m *lab.Minion) string {
	t.Helper()
	var names []string
	for _, n := range s.Nodes {
		if len(connectionsTo(t, m.Host(), n.Addr)) > 0 {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, " and ")
}

// areAt waits until minions are at a node and only there, and tells when each was.
func (s *failbackSite) areAt(t *testing.T, within time.Duration, n *lab.Node, minions []*lab.Minion) {
	t.Helper()
	began, took := time.Now(), map[string]time.Duration{}
	err := lab.Eventually(t.Context(), within, "minions to be at "+n.Name, func(context.Context) error {
		var errs []error
		for _, m := range minions {
			at := s.at(t, m)
			if at != n.Name {
				errs = append(errs, fmt.Errorf("%s is at %q", m.ID, at))
			} else if took[m.ID] == 0 {
				took[m.ID] = time.Since(began).Round(100 * time.Millisecond)
			}
		}
		return errors.Join(errs...)
	})
	t.Logf("at %s after %v", n.Name, took)
	labtest.Must(t, err)
}

// answers: jobs of each of these nodes reach all minions, wherever they are, and so do a file and their pillar.
func (s *failbackSite) answers(t *testing.T, nodes ...*lab.Node) {
	t.Helper()
	for _, n := range nodes {
		labtest.Must(t, s.Answering(t.Context(), n))
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "files and pillars from "+n.Name,
			func(ctx context.Context) error { return s.served(ctx, n) }))
	}
}

func (s *failbackSite) served(ctx context.Context, n *lab.Node) error {
	got, err := n.Master.Pub(ctx, "*", "pillar.items,cp.hash_file", ",", "salt://demo/init.sls")
	if err != nil {
		return err
	}
	for _, m := range s.Minions {
		ret, _ := got[m.ID].(map[string]any)
		if file, _ := ret["cp.hash_file"].(map[string]any); file["hsum"] == nil {
			err = errors.Join(err, fmt.Errorf("%s: the file is %v", m.ID, ret["cp.hash_file"]))
		}
		if e := m.CheckPillar(ret["pillar.items"]); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.ID, e))
		}
	}
	return err
}

func testFailbackFirst(t *testing.T, s *failbackSite) {
	s.areAt(t, time.Minute, s.Nodes[0], s.back) // random_master leaves the first in its place where there is a way back
	for _, m := range s.random {
		at := s.at(t, m)
		if t.Logf("%s is at %s", m.ID, at); at != s.Nodes[0].Name && at != s.Nodes[1].Name {
			t.Errorf("%s is at %q", m.ID, at)
		}
	}
	s.answers(t, s.Nodes...)
}

// testFailbackKilled: with two nodes the one that is left has no majority, and serves the minions all the same.
func testFailbackKilled(t *testing.T, s *failbackSite) {
	n := s.Nodes[0]
	labtest.Must(t, errors.Join(n.Daemon.Kill(), n.Master.Kill()))
	s.areAt(t, 4*time.Minute, s.Nodes[1], s.Minions)
	s.answers(t, s.Nodes[1])
}

// testFailbackBack: those with master_failback go back, the others stay.
func testFailbackBack(t *testing.T, s *failbackSite) {
	ctx, n := t.Context(), s.Nodes[0]
	labtest.Must(t, errors.Join(n.Daemon.Start(ctx), n.Master.Start(ctx)))
	labtest.Must(t, errors.Join(n.Master.WaitReady(ctx, 3*time.Minute), n.Daemon.Serving(ctx, 2*time.Minute)))
	s.areAt(t, 4*time.Minute, n, s.back)
	s.answers(t, s.Nodes...)
	for _, m := range s.random {
		if at := s.at(t, m); at != s.Nodes[1].Name {
			t.Errorf("%s is at %q", m.ID, at)
		}
	}
	labtest.Must(t, s.Whole(ctx, 2*time.Minute))
}

// testFailbackAllKilled: minions go through their list again and again until a node is back.
func testFailbackAllKilled(t *testing.T, s *failbackSite) {
	ctx := t.Context()
	for _, n := range s.Nodes {
		labtest.Must(t, errors.Join(n.Daemon.Kill(), n.Master.Kill()))
	}
	tried := func(m *lab.Minion) int {
		raw, err := os.ReadFile(m.InfoPath())
		labtest.Must(t, err)
		return strings.Count(string(raw), "could not be reached, trying next master")
	}
	before := map[string]int{}
	for _, m := range s.Minions {
		before[m.ID] = tried(m)
	}
	labtest.Must(t, lab.Eventually(ctx, 4*time.Minute, "minions to go through their list twice", func(context.Context) error {
		for _, m := range s.Minions {
			if n := tried(m) - before[m.ID]; n < 2*len(s.Nodes) {
				return fmt.Errorf("%s has tried %d masters", m.ID, n)
			}
		}
		return nil
	}))
	for _, n := range s.Nodes {
		labtest.Must(t, errors.Join(n.Daemon.Start(ctx), n.Master.Start(ctx)))
	}
	for _, n := range s.Nodes {
		labtest.Must(t, errors.Join(n.Master.WaitReady(ctx, 3*time.Minute), n.Daemon.Serving(ctx, 2*time.Minute)))
	}
	s.answers(t, s.Nodes...)
	labtest.Must(t, s.Whole(ctx, 2*time.Minute))
}

//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// clusterMasters give up on a silent minion, and ask again, after fewer seconds: the tests poll.
var clusterMasters = lab.Settings{
	"timeout": 5, "gather_job_timeout": 15,
	"external_auth": map[string]any{"auto": map[string]any{tokenUser: []string{"test.*"}}},
}

// inShell has cmd.run give a line to a shell, which some releases (3006.16, 3007.8) do only when they are told to.
const inShell = "python_shell=True"

// clusterStep is something that a cluster must be able to do.
type clusterStep struct {
	name string
	test func(*testing.T, *lab.Cluster)
	last bool // it leaves the cluster without one of its nodes
}

// The steps by topic. Those of one topic share a cluster, and run in this order; each leaves the cluster whole.
var (
	eventSteps = []clusterStep{
		{name: "everyone hears everything once", test: testPublishedOnce},
		{name: "events fire on one master", test: testEventsOnce},
		{name: "events fire where the policy says", test: testEventPolicy},
		{name: "events are mirrored", test: testEventMirror},
		{name: "events that a hung master had not read", test: testEventsOfHungMaster},
		{name: "events follow", test: testEventsFollow},
	}
	dataSteps = []clusterStep{
		{name: "minion data", test: testMinionData},
		{name: "mine", test: testMine},
		{name: "minion data goes with the key", test: testMinionDataPurge},
		{name: "tokens", test: testTokens},
		{name: "a cleared mine", test: testMineCleared},
		{name: "verify", test: testVerify},
		{name: "what it opens", test: testOpens},
		{name: "what operators have", test: testOperator},
	}
	rootsSteps = []clusterStep{
		{name: "roots", test: testRoots},
		{name: "roots edited at once", test: testRootsEditedAtOnce},
		{name: "roots with very much deleted", test: testRootsHeld},
		{name: "roots rolled back", test: testRootsRollback},
		{name: "roots that only an operator sends", test: testRootsManual},
		{name: "roots that one node keeps to itself", test: testRootsOff},
		{name: "roots in another order", test: testRootsOrder},
		{name: "files without the master", test: testFiles},
		{name: "roots while nodes are down", test: testRootsNodeDown},
	}
	keySteps = []clusterStep{
		{name: "session keys", test: testSessions},
		{name: "keys", test: testKeys},
		{name: "keys in a store of the master's own", test: testKeyStore},
		{name: "members from every node", test: testMembers},
		// no step that takes a key away follows within its minute
		{name: "keys that are deleted in numbers", test: testHeldKeys},
		{name: "hostile bytes", test: testHostile},
		{name: "a hostile minion", test: testHostileMinion},
		{name: "hostile minions", test: testWall},
	}
	jobSteps = []clusterStep{
		{name: "returns without the master", test: testReturns},
		{name: "queued jobs", test: testQueued},
		{name: "what minions publish", test: testPublishedByMinions},
		{name: "jobs are known everywhere", test: testJobs},
		{name: "jobs of a node that was away", test: testJobsOfTheAway},
		{name: "a job that expired on one master", test: testJobsExpire},
		{name: "verify of jobs", test: testVerifyJobs},
		{name: "a master is killed in the middle of a job", test: testMasterKilledMidJob},
		{name: "a publisher is killed in the middle of a job", test: testPublisherKilledMidJob},
		{name: "returns that only Python can take", test: testReturnsOfPython},
		{name: "two masters give one id", test: testSameID},
		{name: "a minion and its clone", test: testClone},
	}
	faultSteps = []clusterStep{
		{name: "a master restarts", test: testMasterRestart},
		{name: "a master is killed", test: testMasterKilled},
		{name: "new minions while masters are away", test: testStrangers},
		{name: "saltclusterd is killed", test: testDaemonKilled},
		{name: "a node is cut off", test: testIsolated},
		{name: "a link is cut", test: testLinkCut},
		{name: "a node was away for a week", test: testAway},
		{name: "a clock is ahead", test: testClock},
	}
	removalStep = clusterStep{name: "a publisher is removed", test: testRemovedMidJob, last: true}
)

// withUniqueJID makes the ids of a master's jobs end with the number of a process.
func withUniqueJID(s lab.Settings) lab.Settings {
	s = maps.Clone(s)
	s["unique_jid"] = true
	return s
}

// TestSmoke is what has to work first: ten steps on one cluster, in a few minutes (make smoke).
func TestSmoke(t *testing.T) {
	if os.Getenv("SALTCLUSTER_SMOKE") == "" {
		t.Skip("the TestCluster tests have these steps, and more: make smoke")
	}
	testCluster(t, lab.Versions, clusterMasters, []clusterStep{
		{name: "everyone hears everything once", test: testPublishedOnce},
		{name: "events fire on one master", test: testEventsOnce},
		{name: "minion data", test: testMinionData},
		{name: "tokens", test: testTokens},
		{name: "roots", test: testRoots},
		{name: "keys", test: testKeys},
		{name: "returns without the master", test: testReturns},
		{name: "a master is killed", test: testMasterKilled},
		{name: "saltclusterd is killed", test: testDaemonKilled},
		{name: "a node is cut off", test: testIsolated},
	})
}

func TestClusterEvents(t *testing.T) { testCluster(t, lab.Versions, clusterMasters, eventSteps) }

func TestClusterData(t *testing.T) { testCluster(t, lab.Versions, clusterMasters, dataSteps) }

func TestClusterRoots(t *testing.T) { testCluster(t, lab.Versions, clusterMasters, rootsSteps) }

func TestClusterKeys(t *testing.T) { testCluster(t, lab.Versions, clusterMasters, keySteps) }

func TestClusterJobs(t *testing.T) { testCluster(t, lab.Versions, clusterMasters, jobSteps) }

func TestClusterFaults(t *testing.T) {
	testCluster(t, lab.Versions, clusterMasters, append(faultSteps, removalStep))
}

// testCluster runs steps with a master and a minion of each of three versions.
func testCluster(t *testing.T, versions []string, settings lab.Settings, steps []clusterStep) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: versions, Minions: versions, MasterSettings: settings, DaemonSettings: eventSettings,
	})
	labtest.Must(t, err)
	labtest.Must(t, countReactions(c, settings))
	// one has it, as masters that were adopted before 0.9 have
	labtest.Must(t, countReactionsOn(c.Nodes[1], withUniqueJID(settings)))
	labtest.Must(t, c.Up(t.Context()))
	minding := newLegal(c)
	for _, s := range steps {
		ok := t.Run(s.name, func(t *testing.T) { s.test(t, c) })
		if !ok {
			t.Log(l.Tails(60))
			for _, m := range c.Minions {
				t.Log(m.Doings(60))
			}
		}
		if s.last {
			return
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute)) // what follows would only repeat the failure
		minding.check(t, s.name, strings.Contains(s.name, "hostile"))
	}
}

// Six publications from each master, as fast as the command line goes: each minion runs each of them exactly once.
func testPublishedOnce(t *testing.T, c *lab.Cluster) {
	const each = 6
	for _, m := range c.Minions {
		_ = os.Remove(filepath.Join(m.StateDir(), "heard"))
		labtest.Must(t, os.MkdirAll(m.StateDir(), 0o755))
	}
	for i := range each {
		for _, n := range c.Nodes {
			line := fmt.Sprintf("%s-%d", n.Name, i)
			got, err := n.Master.Pub(t.Context(), "*", "cmd.run", "echo "+line+" >> {{grains.lab_dir}}/heard", "template=jinja",
				inShell)
			labtest.Must(t, err)
			labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		}
	}
	for _, m := range c.Minions {
		raw, err := os.ReadFile(filepath.Join(m.StateDir(), "heard"))
		labtest.Must(t, err)
		times := map[string]int{}
		for _, l := range strings.Fields(string(raw)) {
			times[l]++
		}
		for i := range each {
			for _, n := range c.Nodes {
				if line := fmt.Sprintf("%s-%d", n.Name, i); times[line] != 1 {
					t.Errorf("%s ran %s %d times", m.ID, line, times[line])
				}
			}
		}
	}
}

// An event from a minion reaches exactly one master's bus.
func testEventsOnce(t *testing.T, c *lab.Cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tag := "lab/once/" + c.Lab.ID()
	found := make([]bool, len(c.Nodes))
	var listeners []*lab.Process
	for _, n := range c.Nodes {
		p := n.NewProcess(lab.Spec{
			Name: "events", Env: n.Master.Env(),
			Argv: []string{"/usr/bin/env", "salt-run", "state.event", "pretty=False"},
		})
		labtest.Must(t, p.Start(ctx))
		defer func() { _ = p.Kill() }()
		listeners = append(listeners, p)
	}
	// Each listener hears an event of its own master before the test begins.
	for i, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "listener on "+n.Name, func(ctx context.Context) error {
			if _, err := n.Master.Run(ctx, "salt", c.Minions[0].ID, "test.ping"); err != nil {
				return err
			}
			if !listeners[i].Logged("salt/job/") {
				return fmt.Errorf("nothing heard")
			}
			return nil
		}))
	}
	before := firedEvents(t, c)
	for _, m := range c.Minions {
		_, err := m.Call(ctx, "event.send", tag+"/"+m.ID)
		labtest.Must(t, err)
	}
	if fired := firedEvents(t, c) - before; fired < float64(len(c.Minions)) {
		t.Errorf("%v events were fired without the masters' Python, of %d", fired, len(c.Minions))
		for _, n := range c.Nodes {
			t.Logf("%s:\n%s\n%s", n.Name, must(t, n.Daemon, "events", "--minion", c.Minions[0].ID).Stdout,
				must(t, n.Daemon, "status").Stdout)
		}
	}
	for _, m := range c.Minions {
		var where []string
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "event of "+m.ID, func(context.Context) error {
			where = where[:0]
			for i, n := range c.Nodes {
				if found[i] = listeners[i].Logged(tag + "/" + m.ID); found[i] {
					where = append(where, n.Name)
				}
			}
			if len(where) == 0 {
				return fmt.Errorf("on no master")
			}
			return nil
		}))
		if len(where) != 1 {
			t.Errorf("event of %s fired on %v", m.ID, where)
		}
		toldOfEvent(t, c, m.ID, tag+"/"+m.ID, where)
	}
}

// toldOfEvent: any node tells which one handled an event, once.
func toldOfEvent(t *testing.T, c *lab.Cluster, minion, tag string, where []string) {
	t.Helper()
	for _, n := range c.Nodes {
		var said adminapi.HandledEvents
		labtest.Must(t, json.Unmarshal([]byte(must(t, n.Daemon, "events", "--minion", minion, "--out", "json").Stdout),
			&said))
		var on []string
		for _, e := range said.Events {
			if e.Tag == tag && e.Minion == minion && !e.Elsewhere {
				on = append(on, e.Node)
			}
		}
		if !slices.Equal(on, where) || len(said.Missing) > 0 {
			t.Errorf("%s says that %s fired on %v (no answer from %v), and it did on %v", n.Name, tag, on, said.Missing, where)
		}
	}
}

// firedEvents counts what all nodes have fired without their masters' Python.
func firedEvents(t *testing.T, c *lab.Cluster) (sum float64) {
	t.Helper()
	for _, n := range c.Nodes {
		sum += metric(t, n, func(line string) bool {
			return strings.HasPrefix(line, `saltcluster_minion_events_total{outcome="fired"`)
		})
	}
	return sum
}

// members and ring_info say the same on every node.
func testMembers(t *testing.T, c *lab.Cluster) {
	leaders := map[string]bool{}
	for _, n := range c.Nodes {
		all, err := n.Daemon.Members(t.Context())
		labtest.Must(t, err)
		for _, m := range all.Members {
			if m.Leader {
				leaders[m.ID] = true
			}
			for _, o := range c.Nodes {
				if o.Name == m.ID && o.Master.Version != m.SaltVersion {
					t.Errorf("%s says %s runs Salt %q, not %s", n.Name, m.ID, m.SaltVersion, o.Master.Version)
				}
			}
		}
		for _, args := range [][]string{{"ring_info"}, {"status"}, {"members", "--out", "yaml"},
			{"ring_info", "--out", "json"}} {
			res, err := n.Daemon.Ctl(t.Context(), args...)
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
		}
	}
	if len(leaders) != 1 {
		t.Errorf("leaders: %v", leaders)
	}
}

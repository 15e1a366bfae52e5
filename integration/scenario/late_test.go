//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// publishPort lets HAProxy send subscribers to no node, and closes their connections, or lets them in again.
func publishPort(t *testing.T, c *lab.Cluster, open bool) {
	t.Helper()
	tell := func(command string) {
		answer, err := c.LB.Command(t.Context(), command)
		labtest.Must(t, err)
		if strings.TrimSpace(answer) != "" {
			t.Fatalf("%s: %s", command, answer)
		}
	}
	for _, n := range c.Nodes {
		if open {
			tell("set server salt-publish/" + n.Name + " state ready")
			continue
		}
		tell("set server salt-publish/" + n.Name + " state maint")
		tell("shutdown sessions server salt-publish/" + n.Name)
	}
	if open {
		return
	}
	labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, "all subscribers to be gone",
		func(ctx context.Context) error {
			for _, n := range c.Nodes {
				if got := metricSum(t, n, "saltcluster_edge_subscribers"); got > 0 {
					return fmt.Errorf("%s has %v", n.Name, got)
				}
			}
			return nil
		}))
}

// lateRuns counts the lines that jobs have written at a minion.
func lateRuns(t *testing.T, m *lab.Minion) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.StateDir(), "late"))
	labtest.Must(t, err)
	times := map[string]int{}
	for _, line := range strings.Fields(string(raw)) {
		times[line]++
	}
	return times
}

// publishParts publishes one job in parts, as salt -b of 3008 does.
const publishParts = `
import sys
import salt.client
client = salt.client.LocalClient(sys.argv[1])
for ids in sys.argv[4:]:
    client.run_job(ids.split(","), "cmd.run", [sys.argv[3]], tgt_type="list", jid=sys.argv[2],
                   kwarg={"template": "jinja", "python_shell": True})
`

// TestLateJobs: jobs that are published while no minion is connected run once at each minion that they are for, when it
// is back, whatever their target looks like; and not at a minion that has started since, which may have run them
// before.
func TestLateJobs(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	// From 3007 on minions look for the loss of their connection, if they are not told not to: they sign in as a new
	// process would then, and 3007.15 sometimes hangs for good some minutes later, in a call of libzmq's that has no end.
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MinionSettings: lab.Settings{"zmq_monitor": false},
		DaemonSettings: metricsForAll,
		MasterSettings: lab.Settings{"timeout": 25}, // for as long what was published unheard is published later
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	up := time.Now()
	const write = "echo %s >> {{grains.lab_dir}}/late"
	for _, m := range c.Minions {
		labtest.Must(t, os.MkdirAll(m.StateDir(), 0o755))
		_ = os.Remove(filepath.Join(m.StateDir(), "late"))
	}
	run := func(n *lab.Node, word string, target ...string) string {
		return asyncOn(t, n, target, "cmd.run", fmt.Sprintf(write, word), "template=jinja", inShell)
	}
	all, first := strings.Join(c.IDs(), ","), c.Minions[0].ID
	before := run(c.Nodes[0], "before", "*")
	inCache(t, c, c.Nodes[0], before, time.Minute)

	publishPort(t, c, false)
	var jobs []string
	for i, target := range [][]string{
		{"*"}, {"-L", all}, {"-E", "min.*"}, {"-G", "kernel:Linux"}, {"-P", "kernel:Lin.*"},
		{"-C", "G@kernel:Linux and min*"}, {"-S", "0.0.0.0/0"},
		{"-C", "not " + first},
	} {
		jobs = append(jobs, run(c.Nodes[i%len(c.Nodes)], fmt.Sprint("late", i), target...))
	}
	others := func() (ids []string) {
		for _, m := range c.Minions[1:] {
			ids = append(ids, m.ID)
		}
		return ids
	}()
	parted := strings.ReplaceAll(time.Now().UTC().Format("20060102150405.000000"), ".", "")
	res, err := c.Nodes[0].Master.Run(t.Context(), "python", "-c", publishParts, c.Nodes[0].Master.ConfigDir+"/master", parted,
		fmt.Sprintf(write, "parted"), first, strings.Join(others, ","))
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	publishPort(t, c, true)
	for _, n := range c.Nodes {
		inCache(t, c, n, parted, time.Minute)
	}
	for i, jid := range jobs {
		ids := c.IDs()
		if i == len(jobs)-1 {
			ids = others
		}
		for _, n := range c.Nodes {
			inCacheOf(t, c, n, jid, time.Minute, ids...)
		}
	}

	// One that starts anew and asks again within the minute has run what it has run.
	m := c.Minions[0]
	labtest.Must(t, m.Stop(t.Context()))
	asyncTo(t, c.Nodes[0], c.Minions[1:], "test.arg", "there is something to give") // a slow machine has forgotten the others
	earlier := givenLate(t, c)
	labtest.Must(t, m.Start(t.Context()))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "jobs to be given to those who have come",
		func(context.Context) error {
			if givenLate(t, c) == earlier {
				return fmt.Errorf("none were")
			}
			return nil
		}))
	after := run(c.Nodes[1], "after", "*") // comes after all that was given
	inCache(t, c, c.Nodes[1], after, time.Minute)

	for _, m := range c.Minions {
		times := lateRuns(t, m)
		for i := range jobs {
			want := 1
			if m.ID == first && i == len(jobs)-1 {
				want = 0
			}
			if word := fmt.Sprint("late", i); times[word] != want {
				t.Errorf("%s ran %s %d times, want %d", m.ID, word, times[word], want)
			}
		}
		if times["before"] != 1 || times["parted"] != 1 || times["after"] != 1 {
			t.Errorf("%s ran %v", m.ID, times)
		}
	}

	// What was published within 20 s after a node's first start is left alone, for clocks differ.
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the first 20 seconds to be over",
		func(context.Context) error {
			if age := time.Since(up); age < 21*time.Second {
				return fmt.Errorf("only %s are", age)
			}
			return nil
		}))
	missedJobs(t, c, run)
}

// missedJobs: what a salt-master publishes while its saltclusterd is down is published when that is back, once, and
// nothing else is.
func missedJobs(t *testing.T, c *lab.Cluster, run func(n *lab.Node, word string, target ...string) string) {
	t.Helper()
	for i, n := range c.Nodes {
		taken := metricSum(t, n, "saltcluster_master_republished_jobs_total")
		heard := run(n, fmt.Sprint("heard", i), "*")
		inCache(t, c, n, heard, time.Minute)
		labtest.Must(t, n.Daemon.Kill())
		missed := run(n, fmt.Sprint("missed", i), "*")
		labtest.Must(t, n.Daemon.Start(t.Context()))
		for _, other := range c.Nodes {
			inCache(t, c, other, missed, time.Minute)
		}
		if now := metricSum(t, n, "saltcluster_master_republished_jobs_total"); taken != 0 || now != 1 {
			t.Errorf("%s took %v jobs from its job cache, then %v", n.Name, taken, now)
		}
	}
	for _, m := range c.Minions {
		times := lateRuns(t, m)
		for i := range c.Nodes {
			for _, word := range []string{fmt.Sprint("heard", i), fmt.Sprint("missed", i)} {
				if times[word] != 1 {
					t.Errorf("%s ran %s %d times", m.ID, word, times[word])
				}
			}
		}
	}
}

// givenLate is how many publications were given late to how many subscribers, on all nodes.
func givenLate(t *testing.T, c *lab.Cluster) (sum float64) {
	t.Helper()
	for _, n := range c.Nodes {
		sum += metricSum(t, n, "saltcluster_fanout_late_publications_total", `outcome="given"`)
	}
	return sum
}

//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
)

// setClock sets the clock of a node's host, as saltclusterd and the salt-master there read it.
func setClock(t *testing.T, n *lab.Node, by time.Duration) {
	t.Helper()
	labtest.Must(t, n.Daemon.SetSeams(lab.Seams{Clock: by}))
	labtest.Must(t, n.Master.SetSeams(lab.Seams{Clock: by}))
}

const (
	// clockReadings is a minute, as a node counts it: every five seconds it reads the clocks of the others. That is what
	// is promised, on a machine of any speed.
	clockReadings = 12
	// clockDeadline is when a node that counts nothing is given up.
	clockDeadline = 5 * time.Minute
)

// readingsOf returns what counts how often a node has read the clocks of the others from now on.
func readingsOf(t *testing.T, n *lab.Node) func() float64 {
	t.Helper()
	read := func() float64 { return metricSum(t, n, "saltcluster_node_clock_readings_total") }
	before := read()
	return func() float64 { return read() - before }
}

// clocksNamed waits until the statuses of all nodes say this of the clock of n, and of no other; empty: nothing is
// wrong with any clock. They do within a minute of the first node's.
func clocksNamed(t *testing.T, c *lab.Cluster, n *lab.Node, text string) {
	t.Helper()
	began, readings := time.Now(), readingsOf(t, c.Nodes[0])
	what := fmt.Sprintf("status to say %q of clocks", text)
	labtest.Must(t, lab.Eventually(t.Context(), clockDeadline, what, func(ctx context.Context) error {
		times := readings() // first: what is seen afterwards is not older
		err := clocksNamedNow(ctx, c, n, text)
		if err != nil && times > clockReadings {
			t.Fatalf("%s: not when %s had read the clocks %v times: %v", what, c.Nodes[0].Name, times, err)
		}
		return err
	}))
	t.Logf("%q after %s and %v readings", text, time.Since(began).Round(100*time.Millisecond), readings())
}

// clocksNamedNow returns how the statuses of all nodes differ from that.
func clocksNamedNow(ctx context.Context, c *lab.Cluster, n *lab.Node, text string) error {
	for _, asked := range c.Nodes {
		var st adminapi.Status
		if err := asked.Daemon.CtlJSON(ctx, &st, "status"); err != nil {
			return err
		}
		named := false
		for _, p := range st.Problems {
			if !strings.Contains(p.Message, "clock") {
				continue
			}
			if text == "" || p.Node != n.Name || !strings.Contains(p.Message, text) || named {
				return fmt.Errorf("%s says of %s: %s", asked.Name, p.Node, p.Message)
			}
			named = true
		}
		if named != (text != "") {
			return fmt.Errorf("%s says nothing of clocks", asked.Name)
		}
	}
	return nil
}

// A node whose clock is wrong is named by every node's status and by doctor, and goes on working.
func testSkew(t *testing.T, c *lab.Cluster) {
	m1, m3 := c.Nodes[0], c.Nodes[2]
	for _, clock := range []time.Duration{2 * time.Minute, 10 * time.Minute, 25 * time.Minute, -2 * time.Minute,
		-25 * time.Minute} {
		setClock(t, m3, clock)
		text := fmt.Sprintf("%dm0s ahead", int(clock.Abs().Minutes()))
		if clock < 0 {
			text = strings.Replace(text, "ahead", "behind", 1)
		}
		clocksNamed(t, c, m3, text)
		if res := says(t, m1.Daemon, []string{"clock", text[:3], "timedatectl"}, "doctor"); res.Code != 10 {
			t.Errorf("doctor: exit code %d", res.Code)
		}
		for _, n := range c.Nodes {
			labtest.Must(t, c.Answering(t.Context(), n))
		}
		setClock(t, m3, 0)
		clocksNamed(t, c, m3, "")
	}
	says(t, m1.Daemon, []string{"not:2m0"}, "doctor")
	must(t, m1.Daemon, "verify")
}

// testClock is what TestOperate tries of clocks at length, in short: one host's clock is 10 and 25 minutes ahead. Each
// node's status names that host, beside what else is wrong there, and says no more of it soon after the repair. Then
// the host starts again with the wrong clock while it sees no other node, so its serials are of the future. All
// minions come to it, and it dies.
func testClock(t *testing.T, c *lab.Cluster) {
	labtest.NeedNetwork(t, c.Lab)
	ctx, m1, m2, m3 := t.Context(), c.Nodes[0], c.Nodes[1], c.Nodes[2]
	labtest.Must(t, m2.Daemon.GiveSeams(lab.SeamClock))
	labtest.Must(t, m2.Master.GiveSeams(lab.SeamClock))
	labtest.Must(t, errors.Join(m2.Daemon.Stop(ctx), m2.Master.Stop(ctx)))
	startAgain(t, m2)
	mistaken := m2.Daemon.ConfigPath + ".d/zz.conf"
	labtest.Must(t, os.MkdirAll(filepath.Dir(mistaken), 0o755))
	labtest.Must(t, os.WriteFile(mistaken, []byte("drain_tiem: 5s\n"), 0o600))
	labtest.Must(t, m2.Daemon.Signal(syscall.SIGHUP))
	const ahead = 25 * time.Minute
	for clock, text := range map[time.Duration]string{10 * time.Minute: "10m0s ahead", ahead: "25m0s ahead"} {
		setClock(t, m2, clock)
		clocksNamed(t, c, m2, text)
		for _, n := range c.Nodes {
			says(t, n.Daemon, []string{text, "drain_tiem"}, "status")
		}
	}
	setClock(t, m2, 0)
	clocksNamed(t, c, m2, "")
	labtest.Must(t, os.Remove(mistaken))

	gather(t, c, m1)
	labtest.Must(t, c.Lab.Partition(ctx, []*lab.Host{m2.Host}, []*lab.Host{m1.Host, m3.Host}))
	setClock(t, m2, ahead)
	labtest.Must(t, m2.Daemon.Restart(ctx))
	newest := func(n *lab.Node) (time.Duration, error) {
		floor, err := hlc.ReadFloor(filepath.Join(n.Daemon.StateDir, "clock"))
		return time.Until(floor.Time()), err
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "serials of the future", func(context.Context) error {
		at, err := newest(m2)
		if err == nil && at < ahead {
			err = fmt.Errorf("%s", at)
		}
		return err
	}))
	labtest.Must(t, c.Lab.Heal(ctx))
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, n.Name+" to see the others",
			func(ctx context.Context) error { return c.Sees(ctx, n, "clock") }))
	}
	gather(t, c, m2)
	labtest.Must(t, m2.Master.Kill())
	labtest.Must(t, m2.Daemon.Kill())
	answersFromAll(t, c, "dead", m1, m3)
	refused := serialsRefused(t, c)
	setClock(t, m2, 0)
	labtest.Must(t, errors.Join(m2.Daemon.GiveSeams(0), m2.Master.GiveSeams(0)))
	startAgain(t, m2)
	answersFromAll(t, c, "back with the right clock", c.Nodes...)
	if n := serialsRefused(t, c); n != refused {
		t.Errorf("%d jobs more are refused for their serials", n-refused)
	}
	clocksNamed(t, c, m2, "")
}

// gather moves all minions to one node, by draining the others.
func gather(t *testing.T, c *lab.Cluster, to *lab.Node) {
	t.Helper()
	for _, n := range c.Nodes {
		if n != to {
			must(t, to.Daemon, "drain", n.Name, "--timeout", "2m")
		}
	}
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "all minions on "+to.Name, func(ctx context.Context) error {
		var st adminapi.Status
		if err := to.Daemon.CtlJSON(ctx, &st, "status"); err != nil {
			return err
		}
		for _, e := range st.Node.Edges {
			if e.Name == "pub" && e.Connections < len(c.Minions) {
				return fmt.Errorf("%d are", e.Connections)
			}
		}
		return nil
	}))
	labtest.Must(t, c.Answering(t.Context(), to))
	for _, n := range c.Nodes {
		if n != to {
			must(t, to.Daemon, "undrain", n.Name, "--timeout", "2m")
		}
	}
}

// answersFromAll waits until all minions are connected to these nodes and answer each of them. From a minute of the
// first node's on they refuse no job for its serial.
func answersFromAll(t *testing.T, c *lab.Cluster, what string, nodes ...*lab.Node) {
	t.Helper()
	began := time.Now()
	eventually(t, clockDeadline, what+": all minions to be connected", func() bool {
		connected := 0.0
		for _, n := range nodes {
			connected += metricSum(t, n, "saltcluster_edge_subscribers", `edge="pub"`)
		}
		return int(connected) >= len(c.Minions)
	})
	connected, refused, readings := time.Since(began), serialsRefused(t, c), readingsOf(t, nodes[0])
	for _, n := range nodes {
		labtest.Must(t, lab.Eventually(t.Context(), clockDeadline, what+": all to answer "+n.Name,
			func(ctx context.Context) error {
				times, before := readings(), serialsRefused(t, c)
				got, err := n.Master.Pub(ctx, "*", "test.ping")
				if more := serialsRefused(t, c) - before; more > 0 && times > clockReadings {
					t.Fatalf("%s: %d minions refuse a job of %s, which has read the clocks %v times", what, more, n.Name, times)
				}
				for id, v := range got {
					if err == nil && v != true {
						err = fmt.Errorf("%s answers %v", id, v)
					}
				}
				return errors.Join(err, lab.AnsweredBy(got, c.IDs()...))
			}))
	}
	t.Logf("%s: all answer %d nodes after %s and %v readings; they were connected after %s, and refused %d jobs", what,
		len(nodes), time.Since(began).Round(100*time.Millisecond), readings(), connected.Round(100*time.Millisecond),
		serialsRefused(t, c)-refused)
}

// serialsRefused counts the jobs that minions have refused because they came before others, by their serials.
func serialsRefused(t *testing.T, c *lab.Cluster) (n int) {
	t.Helper()
	for _, m := range c.Minions {
		raw, err := os.ReadFile(m.LogPath())
		labtest.Must(t, err)
		n += strings.Count(string(raw), "invalid serial")
	}
	return n
}

// The host of a node starts with a wrong clock, or is set while the node is cut off; all minions come to it, and it
// dies. They take what the others publish, and what it publishes itself when its clock is right again.
func testSerials(t *testing.T, c *lab.Cluster) {
	ctx, m1, m2, m3 := t.Context(), c.Nodes[0], c.Nodes[1], c.Nodes[2]
	dies := func(t *testing.T, what string) {
		labtest.Must(t, m2.Master.Kill())
		labtest.Must(t, m2.Daemon.Kill())
		labtest.Must(t, c.Lab.Heal(ctx))
		answersFromAll(t, c, what+", dead", m1, m3)
		setClock(t, m2, 0)
		startAgain(t, m2)
		answersFromAll(t, c, what+", back with the right clock", c.Nodes...)
		gather(t, c, m2)
		answersFromAll(t, c, what+", the minions back with it", c.Nodes...)
	}
	for _, clock := range []time.Duration{25 * time.Minute, -25 * time.Minute} {
		t.Run("started "+clock.String()+" off", func(t *testing.T) {
			gather(t, c, m1)
			setClock(t, m2, clock)
			labtest.Must(t, m2.Daemon.Restart(ctx))
			labtest.Must(t, m2.Daemon.Serving(ctx, 2*time.Minute))
			gather(t, c, m2)
			answersFromAll(t, c, "off", c.Nodes...)
			dies(t, "off")
		})
	}
	t.Run("set while cut off", func(t *testing.T) {
		labtest.NeedNetwork(t, c.Lab)
		gather(t, c, m2)
		labtest.Must(t, c.Lab.Partition(ctx, []*lab.Host{m2.Host}, []*lab.Host{m1.Host, m3.Host}))
		setClock(t, m2, 25*time.Minute)
		labtest.Must(t, c.Answering(ctx, m2))
		dies(t, "cut off")
	})
}

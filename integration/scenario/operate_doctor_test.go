//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// says waits until a verb's output has all of these texts, and none of those behind "not:".
func says(t *testing.T, d *lab.Daemon, texts []string, verb ...string) lab.Result {
	t.Helper()
	var res lab.Result
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, strings.Join(verb, " "),
		func(ctx context.Context) (err error) {
			if res, err = d.Ctl(ctx, verb...); err != nil {
				return err
			}
			for _, text := range texts {
				absent, not := strings.CutPrefix(text, "not:")
				if not == strings.Contains(res.Output(), strings.TrimSpace(absent)) {
					return fmt.Errorf("%q (exit code %d):\n%s", text, res.Code, res.Output())
				}
			}
			return nil
		}))
	return res
}

// What is in the files and what the process works with: the difference is shown, taken over by SIGHUP, and kept out
// where it makes no sense.
func testConfigDiff(t *testing.T, c *lab.Cluster) {
	ctx, n := t.Context(), c.Nodes[1]
	dropIn := n.Daemon.ConfigPath + ".d/zz.conf"
	labtest.Must(t, os.MkdirAll(filepath.Dir(dropIn), 0o755))
	write := func(text string) { labtest.Must(t, os.WriteFile(dropIn, []byte(text), 0o600)) }
	reload := func(other bool) {
		t.Helper()
		pid := n.Daemon.PID()
		labtest.Must(t, n.Daemon.Signal(syscall.SIGHUP))
		if !other {
			return
		}
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "another process", func(context.Context) error {
			if n.Daemon.PID() == pid {
				return fmt.Errorf("still %d", pid)
			}
			return nil
		}))
	}
	must(t, n.Daemon, "config", "diff")

	write("drain_time: 33s\n")
	if res := says(t, n.Daemon, []string{"drain_time", "33s", "1s", dropIn}, "config", "diff"); res.Code != 10 {
		t.Errorf("config diff: exit code %d", res.Code)
	}
	reload(true)
	says(t, n.Daemon, []string{"not:33s"}, "config", "diff")
	must(t, n.Daemon, "config", "diff")

	write("drain_time: 33s\ndrain_tiem: 5s\n")
	if res := says(t, n.Daemon, []string{dropIn + ":2", "drain_time"}, "config", "check"); res.Code == 0 {
		t.Error("config check finds nothing wrong")
	}
	pid := n.Daemon.PID()
	reload(false)
	res := says(t, n.Daemon, []string{dropIn + ":2", "drain_tiem"}, "status")
	t.Logf("status of a node whose reload failed:\n%s", res.Stdout)
	if now := n.Daemon.PID(); now != pid {
		t.Errorf("process %d became %d", pid, now)
	}
	labtest.Must(t, c.Answering(ctx, n))

	labtest.Must(t, os.Remove(dropIn))
	reload(true)
	must(t, n.Daemon, "config", "diff")
	says(t, n.Daemon, []string{"not:drain_tiem"}, "status")
	labtest.Must(t, c.Answering(ctx, n))
}

// What salt publishes on a host whose saltclusterd is dead reaches nobody. Who looks for the reason there finds it, and
// the other nodes name the host.
func testDeadDaemon(t *testing.T, c *lab.Cluster) {
	ctx, m1, m2 := t.Context(), c.Nodes[0], c.Nodes[1]
	labtest.Must(t, m2.Daemon.Kill())
	res, err := m2.Master.Run(ctx, "salt", "--timeout=2", "*", "test.ping")
	labtest.Must(t, err)
	said := "Minion did not return. [No response]"
	if !strings.Contains(res.Output(), said) {
		t.Errorf("salt on %s:\n%s", m2.Name, res.Output())
	}
	t.Logf("salt on %s: exit code %d\n%s", m2.Name, res.Code, res.Output())
	says(t, m2.Daemon, []string{"saltclusterd on this host is not reachable", "systemctl start saltclusterd"}, "doctor",
		"--explain", said)
	says(t, m2.Daemon, []string{"is it running", "salt on this host reaches no minion"}, "status")
	says(t, m1.Daemon, []string{m2.Name + ": does not answer", "salt on that host reaches no minion"}, "status")
	labtest.Must(t, m2.Daemon.Start(ctx))
	labtest.Must(t, m2.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, c.Answering(ctx, m2))
	says(t, m2.Daemon, []string{"not:not reachable"}, "doctor", "--explain", said)
}

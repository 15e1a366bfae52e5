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

// noResponse is what salt says of a minion that its job does not reach.
const noResponse = "Minion did not return. [No response]"

// deadDaemonIsFound: what salt publishes on a host whose saltclusterd is dead reaches no minion. An operator who looks
// for the reason there finds it, and the other nodes name the host.
func deadDaemonIsFound(t *testing.T, dead, other *lab.Node) {
	t.Helper()
	res, err := dead.Master.Run(t.Context(), "salt", "--timeout=2", "*", "test.ping")
	labtest.Must(t, err)
	if !strings.Contains(res.Output(), noResponse) {
		t.Errorf("salt on %s: exit code %d\n%s", dead.Name, res.Code, res.Output())
	}
	says(t, dead.Daemon, []string{"saltclusterd on this host is not reachable", "systemctl start saltclusterd"}, "doctor",
		"--explain", noResponse)
	says(t, dead.Daemon, []string{"says why it ended", "salt on this host reaches no minion"}, "status")
	says(t, other.Daemon, []string{dead.Name + ": does not answer", "salt on that host reaches no minion"}, "status")
}

//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// The unit that comes with the project, in a real systemd: a reload replaces the process and no minion notices.
func TestSystemd(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-systemd")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions[2:], Minions: lab.Versions})
	labtest.Must(t, err)
	n := c.Nodes[0]
	sd := newSystemd(t, n)
	t.Cleanup(func() { labtest.Must(t, sd.Close(context.WithoutCancel(ctx))) })
	n.Daemon.Process = sd.Process
	labtest.Must(t, c.Up(ctx))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster, *lab.Systemd)
	}{
		{"reload", testSystemdReload},
		{"reload with a bad configuration", testSystemdBadReload},
		{"the new process is killed", testSystemdEnded("KILL")},
		{"it is ended by its process id", testSystemdEnded("TERM")},
		{"stop", testSystemdStop},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c, sd) }) {
			res, err := sd.Ctl(ctx, "status", filepath.Base(sd.Unit))
			t.Log(res.Output(), err)
		}
	}
}

// newSystemd gives a node a systemd with the project's own unit, its paths changed to those of the lab.
func newSystemd(t *testing.T, n *lab.Node) *lab.Systemd {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(lab.ModuleRoot(), "packaging", "saltclusterd.service"))
	labtest.Must(t, err)
	// What it may do and where its directories are is tried as packages have it (make test-packages): the lab's are
	// elsewhere.
	unit, _, _ := strings.Cut(string(raw), "StateDirectory=")
	unit += "[Install]\nWantedBy=default.target\n"
	ctl := filepath.Join(filepath.Dir(n.Daemon.Argv[0]), "saltclusterctl")
	for old, now := range map[string]string{
		"ExecStart=/usr/bin/saltclusterd\n": "ExecStart=" + strings.Join(n.Daemon.Argv, " ") + "\n",
		"ExecReload=/usr/bin/saltclusterctl upgrade\n": "ExecReload=" + ctl + " upgrade --config " + n.Daemon.ConfigPath +
			"\n",
		"User=root\n": "",
	} {
		if !strings.Contains(unit, old) {
			t.Fatalf("the unit has no %q", old)
		}
		unit = strings.ReplaceAll(unit, old, now)
	}
	sd, err := n.NewSystemd("saltclusterd.service", unit, n.Daemon.Ready)
	if errors.Is(err, lab.ErrNoSystemd) {
		t.Fatalf("it needs root, /lib/systemd/systemd and a hierarchy of cgroups that may be written: %v", err)
	}
	labtest.Must(t, err)
	return sd
}

// mainPID is that of the service, whose state and result must be good.
func mainPID(ctx context.Context, sd *lab.Systemd) (string, error) {
	p, err := sd.Show(ctx, "MainPID", "ActiveState", "SubState", "Result")
	if err == nil && (p["ActiveState"] != "active" || p["SubState"] != "running" || p["Result"] != "success") {
		err = fmt.Errorf("%v", p)
	}
	return p["MainPID"], err
}

// replaced waits until the service has another main process than the one given, and that one is gone.
func replaced(t *testing.T, sd *lab.Systemd, old string) (now string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "another main process", func(ctx context.Context) error {
		var err error
		if now, err = mainPID(ctx, sd); err == nil && now == old {
			err = fmt.Errorf("it is still %s", old)
		}
		return err
	}))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "one process", func(ctx context.Context) error {
		p, err := sd.Show(ctx, "TasksCurrent", "ControlGroup")
		res, err2 := sd.Ctl(ctx, "status", filepath.Base(sd.Unit))
		if err = errors.Join(err, err2); err == nil && strings.Contains(res.Stdout, "─"+old+" ") {
			err = fmt.Errorf("%s still runs: %v", old, p)
		}
		return err
	}))
	return now
}

func testSystemdReload(t *testing.T, c *lab.Cluster, sd *lab.Systemd) {
	ctx := t.Context()
	marks, before := logSizes(t, c), connections(t, c.LB.Host(), c.Minions[0].Host())
	pid, err := mainPID(ctx, sd)
	labtest.Must(t, err)
	for range 3 {
		res, err := sd.Ctl(ctx, "reload", filepath.Base(sd.Unit))
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		pid = replaced(t, sd, pid)
		labtest.Must(t, c.Answering(ctx, c.Nodes[0]))
	}
	after := connections(t, c.LB.Host(), c.Minions[0].Host())
	for _, conn := range before {
		if !slices.Contains(after, conn) {
			t.Errorf("the connection %s has ended", conn)
		}
	}
	for _, m := range c.Minions {
		if log := noticed(since(t, m, marks[m.ID])); log != "" {
			t.Errorf("%s noticed: %s", m.ID, log)
		}
	}
	if p, err := sd.Show(ctx, "NRestarts"); err != nil || p["NRestarts"] != "0" {
		t.Errorf("%v, %v", p, err)
	}
}

// noticed is what a minion logged, without what the processes of 3008 for jobs say when they end, with any master.
func noticed(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "Task was destroyed but it is pending!") &&
			!strings.Contains(line, "coro=<PubServer._drain_loop()") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func testSystemdBadReload(t *testing.T, c *lab.Cluster, sd *lab.Systemd) {
	ctx, n := t.Context(), c.Nodes[0]
	pid, err := mainPID(ctx, sd)
	labtest.Must(t, err)
	labtest.Must(t, n.Daemon.Configure(lab.Settings{"no_such_option": 1}))
	res, err := sd.Ctl(ctx, "reload", filepath.Base(sd.Unit))
	labtest.Must(t, err)
	if res.Err() == nil {
		t.Error("the reload is said to have succeeded")
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "systemd to be told", func(ctx context.Context) error {
		p, err := sd.Show(ctx, "StatusText")
		if err == nil && !strings.Contains(p["StatusText"], "no_such_option") {
			err = fmt.Errorf("%v", p)
		}
		return err
	}))
	if now, err := mainPID(ctx, sd); err != nil || now != pid {
		t.Errorf("%s became %s, %v", pid, now, err)
	}
	labtest.Must(t, n.Daemon.Configure())
	labtest.Must(t, c.Answering(ctx, n))
}

// testSystemdEnded: systemd starts again what a signal has ended, though that was no failure, and a process that
// another one has put in its place.
func testSystemdEnded(signal string) func(*testing.T, *lab.Cluster, *lab.Systemd) {
	return func(t *testing.T, c *lab.Cluster, sd *lab.Systemd) {
		ctx := t.Context()
		pid, err := mainPID(ctx, sd)
		labtest.Must(t, err)
		res, err := sd.Ctl(ctx, "kill", "--kill-who=main", "--signal="+signal, filepath.Base(sd.Unit))
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		began := time.Now()
		replaced(t, sd, pid)
		t.Logf("another process serves after %s", time.Since(began).Round(10*time.Millisecond))
		labtest.Must(t, c.Answering(ctx, c.Nodes[0]))
	}
}

func testSystemdStop(t *testing.T, _ *lab.Cluster, sd *lab.Systemd) {
	res, err := sd.Ctl(t.Context(), "stop", filepath.Base(sd.Unit))
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	p, err := sd.Show(t.Context(), "ActiveState", "Result", "ExecMainStatus")
	if err != nil || p["ActiveState"] != "inactive" || p["Result"] != "success" || p["ExecMainStatus"] != "0" {
		t.Errorf("%v, %v", p, err)
	}
}

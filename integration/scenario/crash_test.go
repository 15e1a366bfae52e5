//go:build integration

package scenario

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// A saltclusterd at work that crashes, with everything allowed that would have it leave a core and with all that Go can
// say about it, leaves none and says no secret.
func testCrash(t *testing.T, m *membersLab) {
	ctx, m1, m2 := t.Context(), m.Nodes[0], m.Nodes[1]
	secrets := clusterSecrets(t, m)
	d := m2.Daemon
	d.Process.Spec.Env = append(d.Process.Spec.Env, "GOTRACEBACK=crash")
	labtest.Must(t, d.Restart(ctx))
	m.serves(t, m2)
	pid := d.PID()
	labtest.Must(t, unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY},
		nil))
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	labtest.Must(t, err)
	before, err := os.ReadFile(d.LogPath())
	labtest.Must(t, err)
	labtest.Must(t, syscall.Kill(pid, syscall.SIGABRT))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "saltclusterd to crash", func(context.Context) error {
		if d.Running() {
			return errors.New("it runs")
		}
		return nil
	}))
	d.Process.Spec.Env = nil
	after, err := os.ReadFile(d.LogPath())
	labtest.Must(t, err)
	said := after[len(before):]
	if !bytes.Contains(said, []byte("SIGABRT")) || bytes.Count(said, []byte("\ngoroutine ")) < 20 {
		t.Errorf("a crash says:\n%s", said[:min(len(said), 2000)])
	}
	t.Logf("%d bytes were said of %d goroutines", len(said), bytes.Count(said, []byte("\ngoroutine ")))
	for name, secret := range secrets {
		if shows(said, secret) {
			t.Errorf("what a crash says shows %s", name)
		}
	}
	for _, core := range append(cores(t, m2.Dir()), cores(t, cwd)...) {
		t.Errorf("a core was left: %s", core)
	}
	// The same without saltclusterd's precautions.
	res, err := m2.Host.Exec(ctx, nil, "/bin/sh", "-c",
		"ulimit -c unlimited; mkdir -p crash && cd crash && sleep 60 & sleep 1; kill -ABRT $!; wait $!; ls crash")
	labtest.Must(t, err)
	if !strings.Contains(res.Stdout, "core") {
		t.Logf("nobody's crash leaves a core here, so that none is there shows nothing: %q", res.Output())
	}
	labtest.Must(t, os.RemoveAll(filepath.Join(m2.Dir(), "crash")))
	labtest.Must(t, d.Start(ctx))
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness alive")
	m.serves(t, m2)
}

// cores are core files below a directory.
func cores(t *testing.T, dir string) (found []string) {
	t.Helper()
	labtest.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it may be gone by now
		}
		if name := e.Name(); name == "core" || strings.HasPrefix(name, "core.") {
			if raw, err := os.ReadFile(path); err == nil && bytes.HasPrefix(raw, []byte("\x7fELF")) {
				found = append(found, path)
			}
		}
		return nil
	}))
	return found
}

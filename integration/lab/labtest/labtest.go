// Package labtest makes labs for tests: skipped when the virtualenvs are missing, closed at the end, and the ends of
// all logs printed when the test has failed. SALTCLUSTER_LAB_LOGS keeps whole log directories there.
package labtest

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/require"
)

// New makes a lab for the test. Tests that use it start real Salt daemons and take minutes, so they are skipped with
// -short.
func New(t testing.TB, o lab.Options) *lab.Lab {
	t.Helper()
	if testing.Short() {
		t.Skip("a lab takes minutes")
	}
	venvs := o.Venvs
	if venvs == "" {
		venvs = lab.DefaultVenvs()
	}
	if _, err := os.Stat(venvs); err != nil {
		t.Skipf("no Salt virtualenvs, run 'make setup': %v", err)
	}
	if o.Zone == "" {
		o.Zone = "Asia/Kolkata" // Salt's job ids are in UTC: what takes one for the other should show
	}
	if o.Logf == nil {
		o.Logf = t.Logf
	}
	l, err := lab.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if l.Closed() {
			return // the test was done with it before
		}
		if t.Failed() {
			t.Log(l.Tails(40))
		}
		keepLogs(t, l)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// keepLogs copies the logs out of a lab that is about to be removed.
func keepLogs(t testing.TB, l *lab.Lab) {
	dir := os.Getenv("SALTCLUSTER_LAB_LOGS")
	if dir == "" {
		return
	}
	target := filepath.Join(dir, t.Name()+"-"+l.ID())
	if err := os.CopyFS(target, os.DirFS(filepath.Join(l.Dir(), "log"))); err != nil {
		t.Log("keep logs:", err)
	}
}

// Must ends the test when err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	require.NoError(t, err)
}

// NeedNetwork skips the test where network faults are impossible.
func NeedNetwork(t testing.TB, l *lab.Lab) {
	t.Helper()
	if !l.Namespaces() {
		t.Skip(lab.ErrNeedsRoot)
	}
}

package mastertest

import (
	"os"
	"path/filepath"
	"sort"
	"testing"
)

// EnvVenvs names the environment variable that points at the Salt installations.
const EnvVenvs = "SALTCLUSTER_VENVS"

// Versions lists the installed versions ("3006.28"), oldest first; it skips the test when there are none.
func Versions(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv(EnvVenvs)
	if dir == "" {
		t.Skipf("needs stock Salt: set %s=<dir> with <dir>/<version>/bin/python", EnvVenvs)
	}
	pythons, _ := filepath.Glob(filepath.Join(dir, "*", "bin", "python"))
	var out []string
	for _, p := range pythons {
		out = append(out, filepath.Base(filepath.Dir(filepath.Dir(p))))
	}
	if len(out) == 0 {
		t.Skipf("needs stock Salt: no <version>/bin/python below %s=%s", EnvVenvs, dir)
	}
	sort.Strings(out)
	return out
}

// Bin returns the path of a command ("python", "salt-key") of an installed version.
func Bin(t testing.TB, version, name string) string {
	t.Helper()
	p := filepath.Join(os.Getenv(EnvVenvs), version, "bin", name)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("needs stock Salt %s: %v", version, err)
	}
	return p
}

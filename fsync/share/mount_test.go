package share

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// Without a mount of its own what is beside the directory is on the share, links followed.
func TestContains_NoMount(t *testing.T) {
	top := t.TempDir()
	pki, own, cache := filepath.Join(top, "share/pki"), filepath.Join(top, "lib"), filepath.Join(top, "cache")
	for _, dir := range []string{pki, own, cache, filepath.Join(top, "share/jobs"), filepath.Join(top, "share2")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.Symlink(filepath.Join(top, "share/jobs"), filepath.Join(cache, "jobs")))
	for path, want := range map[string]bool{
		pki: true, filepath.Join(top, "share/jobs"): true, filepath.Join(cache, "jobs"): true,
		filepath.Join(cache, "jobs/ab/cd"): true,
		cache:                              false, filepath.Join(cache, "minions"): false, filepath.Join(top, "share2"): false,
		filepath.Join(top, "share/new"): true,
	} {
		if got := Contains(pki, own, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

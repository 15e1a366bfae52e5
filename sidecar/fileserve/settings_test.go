package fileserve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/localmaster"
)

// Configurations of which the master itself answers every request for files, and what an operator hears of each.
func TestLeftToTheMaster(t *testing.T) {
	modules := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(modules, "fileserver"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(modules, "fileserver/roots.py"), nil, 0o644))
	for _, c := range []struct{ config, reason string }{
		{"", ""},
		{"fileserver_backend: [roots, gitfs]", ""},
		{"fileserver_backend: [gitfs, roots]", "roots is not asked first"},
		{"hash_type: blake2b", "hash_type"},
		{"master_stats: True", "master_stats"},
		{"metrics: {enabled: True}", "metrics"},
		{"file_roots: {base: [srv/salt]}", "not an absolute path"},
		{"extension_modules: " + modules, "its own file server module"},
	} {
		conf := filepath.Join(t.TempDir(), "master")
		require.NoError(t, os.WriteFile(conf, []byte(c.config+"\n"), 0o600))
		master, err := localmaster.LoadConfig(conf, localmaster.Version{Major: 3008, Text: "test"})
		require.NoError(t, err)
		set, reason := fileserve.Native(master, 3008)
		if (set != nil) != (c.reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q, not %q", c.config, reason, c.reason)
		}
	}
}

package masterlink

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/sidecar/localmaster"
)

// loadMaster returns the configuration of a master with the given text, in a directory of its own.
func loadMaster(t *testing.T, major int, text string) *localmaster.Config {
	t.Helper()
	return writeMaster(t, filepath.Join(t.TempDir(), "master"), major, text)
}

// writeMaster replaces the configuration file at path and reads it.
func writeMaster(t *testing.T, path string, major int, text string) *localmaster.Config {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := localmaster.LoadConfig(path, localmaster.Version{Major: major})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Package configtest makes configurations of masters for tests that need no master.
package configtest

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/sidecar/localmaster"
)

// Load returns the configuration of a master of a version with the given text, in a directory of its own.
func Load(t testing.TB, major int, text string) *localmaster.Config {
	t.Helper()
	return Write(t, filepath.Join(t.TempDir(), "master"), major, text)
}

// Write replaces the configuration file at path and reads it.
func Write(t testing.TB, path string, major int, text string) *localmaster.Config {
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

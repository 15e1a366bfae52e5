package eventbus

import (
	"path/filepath"
	"testing"

	"saltclusterd/sidecar/localmaster"
)

// busMaster is a configuration with directories of its own.
func busMaster(t testing.TB, major int, id string) *localmaster.Config {
	t.Helper()
	dir := t.TempDir()
	return &localmaster.Config{
		Version: localmaster.Version{Major: major}, ID: id, User: "root", PkiDir: filepath.Join(dir, "pki"),
		CacheDir: filepath.Join(dir, "cache"), SockDir: filepath.Join(dir, "sock"),
	}
}

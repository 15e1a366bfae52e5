package tokens

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/require"
)

// subject is tokens for the contract: they have one version.
type subject struct{ end time.Time }

func TestContract(t *testing.T) {
	replicatest.Run(t, func() replicatest.Subject { return subject{time.Now().Add(time.Hour)} })
}

func (subject) Traits() replicatest.Traits {
	return replicatest.Traits{MaxBody: MaxBody, Table: tableName,
		Newer: []byte(`{"v":2,"tokens":["in another form"]}`)}
}

func (subject) New(cfg replica.Config, dir string, off bool) (replicatest.Store, error) {
	m := localMaster(3006, dir)
	if off {
		m.Store = "rediscluster"
	}
	if err := os.MkdirAll(filepath.Join(m.CacheDir, "tokens"), 0o700); err != nil {
		return nil, err
	}
	return New(Config{Config: cfg, Master: m, Timing: quick})
}

func (subject) path(dir string, item int) string {
	return filepath.Join(dir, "cache", "tokens", secret(item))
}

func (s subject) Write(t testing.TB, dir string, _ replicatest.Store, item, _ int) {
	path := s.path(dir, item)
	temp := path + ".tmp"
	require.NoError(t, errors.Join(os.WriteFile(temp, tokenData(secret(item), s.end), 0o600), os.Rename(temp, path)))
}

func (s subject) Read(t testing.TB, dir string, item int) int {
	raw, err := os.ReadFile(s.path(dir, item))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	case bytes.Equal(raw, tokenData(secret(item), s.end)):
		return 1
	}
	return 0
}

func (s subject) Remove(t testing.TB, dir string, _ replicatest.Store, item int) {
	require.NoError(t, os.Remove(s.path(dir, item)))
}

func (s subject) Spoil(t testing.TB, dir string, item int) {
	require.NoError(t, os.Truncate(s.path(dir, item), 5))
}

func (subject) Lose(t testing.TB, dir string) {
	cache := filepath.Join(dir, "cache")
	replicatest.Lose(t, cache)
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "tokens"), 0o700))
}

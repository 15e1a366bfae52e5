package mines_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/fsync/datacache"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mines"
)

// keys is the cluster's view of keys.
type keys []string

func (k keys) IDs() []string { return k }

func (k keys) Accepted(id string) (string, bool) { return "pub", slices.Contains(k, id) }

func (k keys) Known(id string) bool { return slices.Contains(k, id) }

func (k keys) Life(string) uint64 { return 0 }

var everybody = keys{"Web1", "db:1", "m1", "m2", "ü", "w[1]", "web2"}

// world is a node without peers.
type world struct {
	t       testing.TB
	dir     string // cachedir
	set     *mines.Settings
	service *mines.Service
}

// options reads a master's configuration.
func options(t testing.TB, config string, major int) *localmaster.Config {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "master")
	require.NoError(t, os.WriteFile(conf, []byte("root_dir: "+filepath.Dir(conf)+"\n"+config), 0o600))
	c, err := localmaster.LoadConfig(conf, localmaster.Version{Major: major, Text: "test"})
	require.NoError(t, err)
	return c
}

// newWorld makes a node whose master has these options.
func newWorld(t testing.TB, c *localmaster.Config) *world {
	t.Helper()
	require.NoError(t, os.MkdirAll(c.CacheDir, 0o755))
	set, reason := mines.Native(c, c.Version.Major)
	if set == nil {
		t.Fatalf("not native: %s", reason)
	}
	store := openStore(t, c.CacheDir, c.Version.Major)
	s, err := mines.New(mines.Config{Store: store, Keys: everybody, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.Use(set, "")
	return &world{t: t, dir: c.CacheDir, set: set, service: s}
}

// openStore is a store without peers, which takes changes.
func openStore(t testing.TB, dir string, major int) *datacache.Store {
	t.Helper()
	store, err := datacache.New(storeConfig(t.TempDir(), dir, major))
	if err == nil {
		err = store.Open(context.Background())
	}
	require.NoError(t, err)
	t.Cleanup(func() { check.NoError(t, store.Close()) })
	nothing := func([]byte) ([]byte, bool, error) { return nil, false, nil }
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) { // until it has looked at the disk
		if err := store.Change(context.Background(), "m1", nothing, time.Minute); !errors.Is(err, datacache.ErrNotHere) {
			return store
		}
		if time.Now().After(end) {
			t.Fatal("the store takes no changes")
		}
	}
}

// ask gives a load to the service; nil: only Python can take it, for that reason.
func (w *world) ask(d dict) (reply []byte, reason error) {
	w.t.Helper()
	return w.send(d[1].(string), d[3].(string), wire(w.t, d))
}

func (w *world) send(cmd, minion string, load []byte) (reply []byte, reason error) {
	w.t.Helper()
	calls := 0
	err := w.service.Answer(context.Background(), cmd, minion, load, func(r []byte) {
		reply = bytes.Clone(r)
		calls++
	})
	if (err == nil) != (calls == 1) {
		w.t.Fatalf("%s: %v after %d answers", cmd, err, calls)
	}
	return reply, err
}

// mine is what a minion's file holds; nil: there is none.
func (w *world) mine(major int, id string) []byte {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, mineFile(major, id)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return raw
}

func (w *world) write(name string, content []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)))
}

func mineFile(major int, id string) string {
	if major < 3008 {
		return "minions/" + id + "/mine.p"
	}
	return "mine/" + id + ".p"
}

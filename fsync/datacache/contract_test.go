package datacache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/require"
)

// subject is data of one kind for the contract.
type subject struct{ w *world }

func TestContract(t *testing.T) {
	for _, k := range []Kind{Data, Mine} {
		t.Run(k.String(), func(t *testing.T) {
			replicatest.Run(t, func() replicatest.Subject {
				w := newWorld(t)
				w.kind = k
				return subject{w}
			})
		})
	}
}

func (s subject) Traits() replicatest.Traits {
	return replicatest.Traits{Replaces: true, MaxBody: MaxBody, Table: s.w.kind.table(), Newer: []byte(`{"v":2}`),
		Disposable: true}
}

func (s subject) New(cfg replica.Config, dir string, off bool) (replicatest.Store, error) {
	m := master(3006, filepath.Join(dir, "cache"))
	m.DataCache = !off
	if err := os.MkdirAll(m.CacheDir, 0o755); err != nil {
		return nil, err
	}
	return New(s.w.config(cfg, m))
}

func minion(item int) string { return fmt.Sprint("m", item) }

func (s subject) path(dir string, item int) string {
	return filepath.Join(dir, "cache", s.w.names(minion(item))[0])
}

// names are those of a 3006 master's files.
func (w *world) names(id string) []string { return newLayout(w.kind, master(3006, "")).names(id) }

// content is what a master writes.
func (s subject) content(item, version int) []byte {
	d := data{main: texts("v", fmt.Sprint(version))}
	if s.w.kind == Data {
		d.pillars = []pillar{{raw: texts("p", fmt.Sprint(version))}}
	}
	return newLayout(s.w.kind, master(3006, "")).build(minion(item), d, nil)[s.w.names(minion(item))[0]]
}

func (s subject) Write(t testing.TB, dir string, store replicatest.Store, item, version int) {
	if _, ok := s.w.Accepted(minion(item)); !ok {
		s.w.setKey(minion(item), "k")
	}
	path := s.path(dir, item)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".tmp", s.content(item, version), 0o600),
		os.Rename(path+".tmp", path)); err != nil {
		t.Fatal(err)
	}
	if store != nil {
		store.(*Store).Touched(minion(item))
	}
}

func (s subject) Read(_ testing.TB, dir string, item int) int {
	raw, _ := os.ReadFile(s.path(dir, item))
	return 1 + slices.IndexFunc([]int{1, 2}, func(v int) bool { return bytes.Equal(raw, s.content(item, v)) })
}

// Remove deletes a minion's key, and with it its data; a mine may be flushed as well.
func (s subject) Remove(t testing.TB, dir string, store replicatest.Store, item int) {
	if s.w.kind == Data {
		s.w.setKey(minion(item), "")
		return
	}
	require.NoError(t, os.Remove(s.path(dir, item)))
	store.(*Store).Touched(minion(item))
}

func (s subject) Spoil(t testing.TB, dir string, item int) {
	require.NoError(t, os.Truncate(s.path(dir, item), 3))
}

func (subject) Lose(t testing.TB, dir string) {
	replicatest.Lose(t, filepath.Join(dir, "cache", joinedBank))
}

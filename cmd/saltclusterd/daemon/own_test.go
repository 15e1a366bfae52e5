package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// What one master has for itself is named once two of them tell that they differ, and not before.
func TestStatusComparesWhatMastersHave(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "gpgkeys", "private-keys-v1.d")
	path := filepath.Join(dir, "master")
	if err := os.WriteFile(path, []byte("interface: 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := New(&config.Config{ID: "a", Salt: config.Salt{Config: path}}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if d.master, err = localmaster.LoadConfig(path, localmaster.Version{Major: 3006}); err != nil {
		t.Fatal(err)
	}
	read := func() nodeStats {
		d.own.at.Store(0)
		d.checkOwn(t.Context())
		return nodeStats{Own: d.own.get()}
	}
	before := read()
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keys, "0123.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	after := read()
	for name, c := range map[string]struct {
		stats map[node.ID]nodeStats
		want  int
	}{
		"both without":          {map[node.ID]nodeStats{"a": before, "b": before}, 0},
		"both with":             {map[node.ID]nodeStats{"a": after, "b": after}, 0},
		"one with":              {map[node.ID]nodeStats{"a": before, "b": after}, 1},
		"one of an old version": {map[node.ID]nodeStats{"a": after, "b": {}}, 0},
	} {
		got := ownProblems(c.stats)
		if len(got) != c.want || c.want > 0 && (!strings.Contains(got[0].Message, "gpg_keydir") || got[0].Level != adminapi.LevelWarn || got[0].Hint == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// What masters have each for itself is in the status of any node, each kind by itself, with what to do.
func TestStatusNamesWhatEachMasterHas(t *testing.T) {
	t.Parallel()
	dirs, roots := []string{t.TempDir(), t.TempDir()}, t.TempDir()
	if err := os.MkdirAll(filepath.Join(roots, ".git"), 0o750); err != nil {
		t.Fatal(err)
	}
	for i, dir := range dirs {
		own := fmt.Sprintf("rest_cherrypy: {port: 8000}\nfileserver_events: True\nfile_roots: {base: [%s]}\nreactor: [{'salt/fileserver/*': ['salt://a.sls']}]\n"+
			"gpg_keydir: %s/gpg\ngitfs_remotes: [{'ssh://h/r': [{%s: SECRET}]}]\n", roots, dir, []string{"passphrase", "user"}[i])
		for name, text := range map[string]string{"master.d/own.conf": own, "gpg/private-keys-v1.d/" + []string{"0", "1"}[i] + ".key": "SECRET"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), text, 0o600)
		}
	}
	nodes := cluster(t, dirs...)
	eventually(t, "the masters to be compared", func() error {
		st, err := nodes[0].Status(t.Context())
		if err != nil {
			return err
		}
		for _, says := range []string{"gpg_keydir", "fileserver_events", "rest_cherrypy", "is a git work tree", "passphrase"} {
			if !slices.ContainsFunc(st.Problems, func(p adminapi.Problem) bool {
				return p.Level == adminapi.LevelWarn && strings.Contains(p.Message, says) && p.Hint != ""
			}) {
				return fmt.Errorf("nothing is said of %s: %+v", says, st.Problems)
			}
		}
		if text := fmt.Sprintf("%+v", st); strings.Contains(text, "SECRET") {
			t.Errorf("secrets: %s", text)
		}
		return nil
	})
}

// A node whose master names very much tells a part of it, in an answer that others can read.
func TestOwnFitsIntoTheAnswer(t *testing.T) {
	var reactions strings.Builder
	for i := range 3 * maxOwn {
		fmt.Fprintf(&reactions, "/srv/%s/%d.sls, ", strings.Repeat("long", 30), i)
	}
	path := filepath.Join(t.TempDir(), "master")
	write(t, path, "interface: 127.0.0.1\nreactor: [{a: ["+reactions.String()+"]}]\nvault: {url: u}\n", 0o600)
	d, err := New(&config.Config{ID: "a", Salt: config.Salt{Config: path}}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if d.master, err = localmaster.LoadConfig(path, localmaster.Version{Major: 3006}); err != nil {
		t.Fatal(err)
	}
	d.checkOwn(t.Context())
	own := d.own.get()
	if text, err := json.Marshal(own); err != nil || len(text) > maxOwnSize || own["vault"] != "on" || len(own) > maxOwn+1 {
		t.Errorf("%d bytes, %d items, %v", len(text), len(own), err)
	}
	if got := ownProblems(map[node.ID]nodeStats{"a": {Own: own}, "b": {Own: localmaster.Own{"vault": ""}}}); len(got) != 2 ||
		!strings.Contains(got[1].Message, "are not compared") {
		t.Errorf("%+v", got)
	}
}

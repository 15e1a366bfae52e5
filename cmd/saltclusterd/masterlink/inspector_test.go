package masterlink

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
)

// newInspector returns an Inspector of one master.
func newInspector(master *localmaster.Config) *Inspector {
	return NewInspector(InspectorConfig{
		Master:      func() *localmaster.Config { return master },
		EveryMaster: func(string) bool { return false }, CompareRoots: true, Logger: slog.New(slog.DiscardHandler),
	})
}

// What one master has for itself is a problem once two masters report that they differ, and not before.
func TestOwnProblems(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "gpgkeys", "private-keys-v1.d")
	i := newInspector(configtest.Write(t, filepath.Join(dir, "master"), 3006, "interface: 127.0.0.1\n"))
	read := func() localmaster.Own {
		i.ownAt.Store(0)
		i.CheckOwn(t.Context())
		return i.Own()
	}
	before := read()
	require.NoError(t, os.MkdirAll(keys, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(keys, "0123.key"), nil, 0o600))
	after := read()
	for name, c := range map[string]struct {
		masters map[string]localmaster.Own
		want    int
	}{
		"both without":          {map[string]localmaster.Own{"a": before, "b": before}, 0},
		"both with":             {map[string]localmaster.Own{"a": after, "b": after}, 0},
		"one with":              {map[string]localmaster.Own{"a": before, "b": after}, 1},
		"one of an old version": {map[string]localmaster.Own{"a": after, "b": nil}, 0},
	} {
		got := OwnProblems(c.masters)
		if len(got) != c.want || c.want > 0 && (!strings.Contains(got[0].Message, "gpg_keydir") ||
			got[0].Level != adminapi.LevelWarn || got[0].Hint == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A node whose master names very many files reports a part of them, in an answer that others can read.
func TestInspector_OwnFitsIntoAnswer(t *testing.T) {
	var reactions strings.Builder
	for i := range 3 * maxOwn {
		fmt.Fprintf(&reactions, "/srv/%s/%d.sls, ", strings.Repeat("long", 30), i)
	}
	i := newInspector(configtest.Load(t, 3006,
		"interface: 127.0.0.1\nreactor: [{a: ["+reactions.String()+"]}]\nvault: {url: u}\n"))
	i.CheckOwn(t.Context())
	own := i.Own()
	text, err := json.Marshal(own)
	if err != nil || len(text) > maxOwnSize || own["vault"] != "on" || len(own) > maxOwn+1 {
		t.Errorf("%d bytes, %d items, %v", len(text), len(own), err)
	}
	got := OwnProblems(map[string]localmaster.Own{"a": own, "b": {"vault": ""}})
	if len(got) != 2 || !strings.Contains(got[1].Message, "are not compared") {
		t.Errorf("%+v", got)
	}
}

// Only a thorium that deletes keys by the events of its own master takes keys away.
func TestInspector_TakesKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "clean.sls"), []byte("clean:\n  key.timeout:\n    - delete: 90\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	thorium := configtest.Write(t, filepath.Join(dir, "thorium"), 3008,
		"engines: [{thorium: {}}]\nthorium_roots: {base: ["+dir+"]}\n")
	without := configtest.Write(t, filepath.Join(dir, "without"), 3008, "engines: [{thorium: {}}]\n")
	if i := newInspector(thorium); !i.TakesKeys() {
		t.Error("a thorium that deletes keys")
	}
	i := newInspector(thorium)
	if i.UseLatest(without); i.TakesKeys() {
		t.Error("after a restart without its formula")
	}
}

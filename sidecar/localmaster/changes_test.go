package localmaster

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// What a file would change is known before it is written, and before it is removed; the order of files counts.
func TestConfigAfterChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	mine := filepath.Join(dir, "master.d", DropInName)
	for name, text := range map[string]string{
		path: "interface: 10.0.0.1\n", filepath.Join(dir, "master.d/a.conf"): "interface: 10.0.0.2\n",
		filepath.Join(dir, "late.conf"): "interface: 10.0.0.3\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for name, tt := range map[string]struct {
		changes Changes
		want    string
	}{
		"none":        {nil, "10.0.0.2"},
		"the drop-in": {Changes{mine: []byte("interface: 127.0.0.1\n")}, "127.0.0.1"},
		"hidden from glob": {Changes{filepath.Join(dir, "master.d/.b.conf"): []byte("interface: 127.0.0.1\n")},
			"10.0.0.2"},
		"another ending":              {Changes{mine + ".off": []byte("interface: 127.0.0.1\n")}, "10.0.0.2"},
		"one goes":                    {Changes{filepath.Join(dir, "master.d/a.conf"): nil}, "10.0.0.1"},
		"one goes that was not there": {Changes{mine: nil}, "10.0.0.2"},
		"the main file": {Changes{path: []byte("include: late.conf\n"), mine: []byte("interface: 127.0.0.1\n")},
			"10.0.0.3"},
	} {
		cfg, err := LoadConfigAfter(path, Version{Major: 3007}, tt.changes)
		require.NoError(t, err, name)
		if cfg.Interface != tt.want {
			t.Errorf("%s: interface %s, want %s", name, cfg.Interface, tt.want)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(mine)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestDropInNamesRunners(t *testing.T) {
	text, err := DropIn(DropInOptions{MasterID: "n", RunnerDirs: []string{"/srv/it's", "/usr/share/x"}})
	if err != nil || !IsDropIn(text) || IsDropIn([]byte("interface: 127.0.0.1\n")) {
		t.Fatalf("%s, %v", text, err)
	}
	cfg := loadText(t, 3007, string(text))
	if got := cfg.Strings("runner_dirs"); len(got) != 2 || got[0] != "/srv/it's" {
		t.Errorf("runner_dirs %q", got)
	}
	if _, err := DropIn(DropInOptions{MasterID: "n", RunnerDirs: []string{"a\nb"}}); err == nil {
		t.Error("a directory of two lines is accepted")
	}
}

package paths

import (
	"path/filepath"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/srv/salt", "/srv/salt", true}, {"/srv/salt/a", "/srv/salt", true}, {"/srv/salt2", "/srv/salt", false},
		{"/srv", "/srv/salt", false}, {"/srv", "/", true}, {"/", "/", true}, {"/", "/srv", false},
	} {
		if got := Within(c.path, c.dir); got != c.want {
			t.Errorf("Within(%q, %q) is %v", c.path, c.dir, got)
		}
	}
}

func TestExisting(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: dir, filepath.Join(dir, "a/b"): dir, "/": "/"} {
		if got := Existing(path); got != want {
			t.Errorf("Existing(%q) is %q", path, got)
		}
	}
}

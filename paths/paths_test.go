package paths

import (
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/srv/salt", "/srv/salt", true}, {"/srv/salt/a", "/srv/salt", true}, {"/srv/salt2", "/srv/salt", false},
		{"/srv", "/srv/salt", false}, {"/srv", "/", true}, {"/", "/", true}, {"/", "/srv", false},
	} {
		check.Equal(t, Within(c.path, c.dir), c.want, "Within(", c.path, c.dir, ")")
	}
}

func TestExisting(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: dir, filepath.Join(dir, "a/b"): dir, "/": "/"} {
		check.Equal(t, Existing(path), want, "Existing(", path, ")")
	}
}

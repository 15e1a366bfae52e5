package localmaster_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

// fake are options of which only the values count.
type fake map[string]any

func (f fake) Raw(name string) (any, bool)  { v, ok := f[name]; return v, ok }
func (f fake) Bool(string) bool             { return false }
func (f fake) Text(name string) string      { s, _ := f[name].(string); return s }
func (f fake) Strings(name string) []string { s, _ := f[name].([]string); return s }

func TestSameOptions(t *testing.T) {
	a := fake{"cachedir": "/a", "mine_get": map[string]any{"a": []any{"b"}}, "log_level": "info"}
	names := []string{"cachedir", "mine_get"}
	for name, c := range map[string]struct {
		b    fake
		want bool
	}{
		"another log level": {fake{"cachedir": "/a", "mine_get": map[string]any{"a": []any{"b"}}, "log_level": "debug"},
			true},
		"another cachedir": {fake{"cachedir": "/b", "mine_get": map[string]any{"a": []any{"b"}}}, false},
		"other rights":     {fake{"cachedir": "/a", "mine_get": map[string]any{"a": []any{"c"}}}, false},
		"no rights":        {fake{"cachedir": "/a"}, false},
		"nobody's rights":  {fake{"cachedir": "/a", "mine_get": nil}, false},
	} {
		check.Equal(t, localmaster.SameOptions(a, c.b, names), c.want, name)
	}
	if localmaster.SameOptions(fake{}, fake{"mine_get": nil}, names) {
		t.Error("nothing said is the same as said that it is nothing")
	}
}

func TestEnabled(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  bool
	}{
		"on": {map[string]any{"enabled": true}, true}, "off": {map[string]any{"enabled": false}, false},
		"nothing said": {map[string]any{}, false}, "no map": {true, false},
	} {
		check.Equal(t, localmaster.Enabled(fake{"tracing": c.value}, "tracing"), c.want, name)
	}
}

func TestSiteModule(t *testing.T) {
	dir := t.TempDir()
	o := fake{"cache_dirs": []string{dir + "/own"}, "extension_modules": dir + "/ext",
		"module_dirs": []string{"", dir + "/more"}}
	dirs := localmaster.ModuleDirs(o, "cache_dirs", "cache")
	if want := []string{dir + "/own", dir + "/ext/cache", dir + "/more/cache"}; !slices.Equal(dirs, want) {
		t.Fatalf("%q, not %q", dirs, want)
	}
	check.Equal(t, localmaster.SiteModule(dirs, "localfs"), "", "there is none, but")
	for _, name := range []string{"own/localfs", "ext/cache/localfs.so", "more/cache/localfs.py"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		check.Equal(t, localmaster.SiteModule(dirs, "localfs"), path)
		require.NoError(t, os.Remove(path))
	}
}

func TestRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	require.NoError(t, os.WriteFile(path, []byte("file_roots:\n  base: [/srv/salt, 5, /srv/more]\n  dev: no list\n"),
		0o600))
	c, err := localmaster.LoadConfig(path, localmaster.Version{Major: 3007})
	require.NoError(t, err)
	want := map[string][]string{"base": {"/srv/salt", "", "/srv/more"}, "dev": {}}
	if got := c.Roots(localmaster.FileRoots); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q", got)
	}
}

package rootsadmin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/roots"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

func masterConfig(t *testing.T, dir, text string) *localmaster.Config {
	t.Helper()
	path := filepath.Join(dir, "master")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600))
	v, err := localmaster.ParseVersion("3008.3")
	require.NoError(t, err)
	c, err := localmaster.LoadConfig(path, v)
	require.NoError(t, err)
	return c
}

func slotTexts(dir string, slots []roots.Slot) string {
	var out []string
	for _, s := range slots {
		out = append(out, fmt.Sprint(s.Name, " ", strings.TrimPrefix(s.Dir, dir)))
	}
	return strings.Join(out, "\n")
}

func TestDefaultIgnore(t *testing.T) {
	if got, want := config.DefaultConfig().Roots.Ignore, roots.DefaultIgnore(); !slices.Equal(got, want) {
		t.Errorf("the option says %q, the engine %q", got, want)
	}
}

func TestFindSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   string
		notes  []string
	}{
		"defaults": {
			"", "file:base:0 /srv/salt\npillar:base:0 /srv/pillar",
			[]string{"file:base:1 (/srv/spm/salt)", "pillar:base:1 (/srv/spm/pillar)"},
		},
		"a directory that is missing": {
			"file_roots: {base: [/srv/spm/x]}", "file:base:0 /srv/spm/x\npillar:base:0 /srv/pillar",
			[]string{"pillar:base:1"},
		},
		"environments": {
			"file_roots: {base: [DIR/a, DIR/b], 'prod:x': [DIR/c]}\npillar_roots: {base: [DIR/p/]}",
			"file:base:0 /a\nfile:base:1 /b\nfile:prod:x:0 /c\npillar:base:0 /p", nil,
		},
		"the same directory twice": {
			"file_roots: {base: [DIR/a, DIR/link, DIR/b], dev: [DIR/a/../b]}\npillar_roots: {base: [DIR/p]}",
			"file:base:0 /a\nfile:base:2 /b\npillar:base:0 /p",
			[]string{
				"file:base:1 (DIR/link) is replicated as a part of file:base:0",
				"file:dev:0 (DIR/b) is replicated as a part of file:base:2",
			},
		},
		"nested": {
			"file_roots: {base: [DIR/a/inner, DIR/a], dev: [DIR/a-1]}\npillar_roots: {base: [DIR/a/pillar]}",
			"file:base:1 /a\nfile:dev:0 /a-1",
			[]string{"file:base:0 (DIR/a/inner) is replicated as a part of file:base:1", "pillar:base:0"},
		},
		"dynamic environments": {
			"file_roots: {base: [DIR/a], __env__: [DIR/__env__]}\npillar_roots: {__env__: [DIR/q]}", "file:base:0 /a",
			[]string{"file_roots of the environment __env__", "pillar_roots of the environment __env__"},
		},
		"other backends": {
			"fileserver_backend: [git, roots]\nfile_roots: {base: [DIR/a]}\npillar_roots: {base: [DIR/p]}",
			"file:base:0 /a\npillar:base:0 /p", []string{"fileserver backend gitfs are not replicated"},
		},
		"without roots": {
			"fileserver_backend: [gitfs]\nfile_roots: {base: [DIR/a]}\npillar_roots: {base: [DIR/p]}",
			"pillar:base:0 /p", []string{"gitfs", "file_roots are not replicated"},
		},
		"wildcards": {
			"file_roots: {base: ['DIR/[ab]*/inner/', 'DIR/none/*/']}\npillar_roots: {base: [DIR/p]}",
			"file:base:0 /a/inner\npillar:base:0 /p",
			[]string{"file_roots has wildcards"},
		},
		"our own state": {
			"file_roots: {base: [DIR, DIR/a, relative, null]}\npillar_roots: {base: [DIR/state/x]}",
			"file:base:1 /a\npillar:base:0 /state/x",
			[]string{
				`("relative") is not replicated`, `("") is not replicated`,
				"(DIR) is not replicated: DIR/state is inside of it",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"a/inner", "b"} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
			}
			require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
			slots, notes := findSlots(masterConfig(t, dir, tc.config), filepath.Join(dir, "state"))
			if got := slotTexts(dir, slots); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("notes %q", notes)
			}
			for i, n := range tc.notes {
				if !strings.Contains(notes[i], strings.ReplaceAll(n, "DIR", dir)) {
					t.Errorf("note %q, want %q", notes[i], n)
				}
			}
		})
	}
}

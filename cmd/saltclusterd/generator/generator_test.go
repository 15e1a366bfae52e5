package generator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/require"
)

func TestGenerate(t *testing.T) {
	for _, c := range []struct {
		name, daemon, master string
		want                 []string // lines without the comment
	}{
		{"defaults", "", "", []string{"[Service]", "User=root"}},
		{"packages of Salt", "", "user: salt\n", []string{"[Service]", "User=salt"}},
		{"a witness", "cluster_witness: True\n", "user: salt\n", []string{"[Service]", "User=saltclusterd"}},
		{"no name at all", "", "user: 'x; ExecStart=/bin/sh'\n",
			[]string{"[Service]", `# the option user is not an account name: "x; ExecStart=/bin/sh"`}},
		{
			"other places", "state_dir: DIR/state\n",
			"user: salt\npki_dir: DIR/pki/master\nfile_roots: {base: [DIR/my states, /srv/salt], dev: [DIR/100%]}\npillar_roots: {base: [/nowhere/pillar]}\n",
			[]string{
				"[Service]", "User=salt", "# not there: /nowhere/pillar", `ReadWritePaths="DIR"`, `ReadWritePaths="DIR/100%%"`,
				`ReadWritePaths="DIR/my states"`,
			},
		},
		{
			"links", "state_dir: DIR/link to state\n",
			"user: salt\npki_dir: DIR/pki\ncachedir: DIR/cache\nsock_dir: DIR/sock\nfile_roots: {base: [DIR/states]}\npillar_roots: {base: [DIR/loop]}\n",
			[]string{
				"[Service]", "User=salt", "# not there: /nowhere/jobs", `ReadWritePaths="DIR"`, `ReadWritePaths="DIR/100%%"`,
				`ReadWritePaths="DIR/cache"`,
				`ReadWritePaths="DIR/my states"`,
			},
		},
		{"a line in a path", "", "pki_dir: \"/a\\nExecStart=/bin/sh\"\n", []string{"[Service]", "User=root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fill := strings.NewReplacer("DIR", dir)
			private := "PrivateTmp=no\n" // the test's own directory may be a temporary one
			for _, d := range []string{"my states", "100%", "salt"} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
			}
			if c.name == "links" {
				layLinks(t, dir)
			}
			master, own := filepath.Join(dir, "salt/master"), filepath.Join(dir, "salt/saltclusterd")
			write(t, master, fill.Replace(c.master))
			write(t, own, "salt_config: "+master+"\n"+fill.Replace(c.daemon))
			text, err := generateDropIn(own)
			require.NoError(t, err)
			want := fill.Replace(strings.Join(c.want, "\n")) + "\n"
			_, got, _ := strings.Cut(string(text), "after this one's.\n")
			// where the test has the master's configuration
			got = strings.ReplaceAll(got, fmt.Sprintf("ReadWritePaths=%q\n", dir+"/salt"), "")
			if isTemporary(dir) && !strings.Contains(got, private) && c.name != "a witness" {
				t.Errorf("temporary directories are closed:\n%s", got)
			}
			got = strings.Replace(got, private, "", 1)
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// layLinks has everything elsewhere than it seems: a root, the keys by two links, the jobs within the cache on what is
// not mounted.
func layLinks(t *testing.T, dir string) {
	t.Helper()
	for link, to := range map[string]string{
		"states": "my states", "pki": dir + "/second", "second": "salt/../100%/pki", "cache/jobs": "/nowhere/jobs",
		"cache/note": dir + "/file",
		"loop":       "loop", "link to state": ".",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755))
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	write(t, filepath.Join(dir, "file"), "")
}

func TestRunWritesTheDropIn(t *testing.T) {
	dir := t.TempDir()
	if _, err := os.Stat(config.DefaultPath); err == nil {
		t.Skip("this machine has a configuration")
	}
	require.NoError(t, Run([]string{dir, dir, dir}))
	text, err := os.ReadFile(filepath.Join(dir, dropInPath))
	if err != nil || !strings.Contains(string(text), "\nUser=root\n") {
		t.Errorf("%s, %v", text, err)
	}
	if err := Run([]string{"relative"}); err == nil {
		t.Error("a directory that is not absolute was taken")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

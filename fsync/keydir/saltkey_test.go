package keydir

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// venvs lists the installed Salts: the directories below $SALTCLUSTER_VENVS, each a virtual environment.
func venvs(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("SALTCLUSTER_VENVS")
	if dir == "" {
		t.Skip("SALTCLUSTER_VENVS is not set")
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*", "bin", "salt-key"))
	if len(found) == 0 {
		t.Skipf("no salt-key in %s", dir)
	}
	return found
}

// saltKey runs the stock salt-key of one version on the directories of a node.
type saltKey struct {
	t      *testing.T
	cmd    string
	config string
}

func newSaltKey(t *testing.T, cmd string, n *testNode) *saltKey {
	t.Helper()
	root := t.TempDir()
	config := "root_dir: /\npki_dir: " + n.pki + "\ncachedir: " + root + "/cache\nsock_dir: " + root + "/sock\n" +
		"user: root\nlog_level: error\nlog_file: " + root + "/log\nid: " + string(n.id) + "\n"
	for _, dir := range []string{"cache", "sock"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "master"), []byte(config), 0o600))
	return &saltKey{t, cmd, root}
}

func (s *saltKey) run(args ...string) {
	s.t.Helper()
	args = append([]string{"-c", s.config, "--yes"}, args...)
	if out, err := exec.CommandContext(s.t.Context(), s.cmd, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("salt-key %v: %v\n%s", args, err, out)
	}
}

// TestStockSaltKey lets salt-key of every installed version work on one node and looks at another.
func TestStockSaltKey(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("salt-key wants to be the user of the master: root here")
	}
	for _, cmd := range venvs(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(cmd))), func(t *testing.T) {
			t.Parallel() // they wait for Python
			k := keyTexts()
			_, m1, m2 := pair(t)
			key := newSaltKey(t, cmd, m1)
			for i, id := range []string{"a", "b", "c"} {
				m1.put(pendingDir, id, k[i])
			}
			m2.put(deniedDir, "a", k[3])
			await(t, files{"minions_pre/a": k[0], "minions_pre/b": k[1], "minions_pre/c": k[2], "minions_denied/a": k[3]}, m1,
				m2)
			key.run("-a", "a")
			await(t, files{"minions/a": k[0], "minions_pre/b": k[1], "minions_pre/c": k[2], "minions_denied/a": k[3]}, m1, m2)
			key.run("-r", "b")
			await(t, files{"minions/a": k[0], "minions_rejected/b": k[1], "minions_pre/c": k[2], "minions_denied/a": k[3]}, m1,
				m2)
			key.run("-d", "c")
			await(t, files{"minions/a": k[0], "minions_rejected/b": k[1], "minions_denied/a": k[3]}, m1, m2)
			key.run("-a", "b", "--include-rejected")
			await(t, files{"minions/a": k[0], "minions/b": k[1], "minions_denied/a": k[3]}, m1, m2)
			key.run("-r", "a", "--include-accepted")
			await(t, files{"minions_rejected/a": k[0], "minions/b": k[1], "minions_denied/a": k[3]}, m1, m2)
			m2.put(pendingDir, "d", k[2])
			m2.put(pendingDir, "e", k[3])
			await(t, files{
				"minions_rejected/a": k[0], "minions/b": k[1], "minions_denied/a": k[3],
				"minions_pre/d": k[2], "minions_pre/e": k[3],
			}, m1, m2)
			key.run("-A")
			await(t, files{
				"minions_rejected/a": k[0], "minions/b": k[1], "minions_denied/a": k[3],
				"minions/d": k[2], "minions/e": k[3],
			}, m1, m2)
			key.run("-d", "a") // the rejected and the denied key
			await(t, files{"minions/b": k[1], "minions/d": k[2], "minions/e": k[3]}, m1, m2)
			key.run("-D")
			await(t, files{}, m1, m2)
		})
	}
}

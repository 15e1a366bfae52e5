package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// What masters have each for itself is in the status of any node, each kind by itself, with what to do.
func TestStatus_PerMasterState(t *testing.T) {
	t.Parallel()
	dirs, roots := []string{t.TempDir(), t.TempDir()}, t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(roots, ".git"), 0o750))
	for i, dir := range dirs {
		own := fmt.Sprintf("rest_cherrypy: {port: 8000}\nfileserver_events: True\nfile_roots: {base: [%s]}\nreactor: [{'salt/fileserver/*': ['salt://a.sls']}]\n"+
			"gpg_keydir: %s/gpg\ngitfs_remotes: [{'ssh://h/r': [{%s: SECRET}]}]\n", roots, dir, []string{"passphrase",
			"user"}[i])
		for name, text := range map[string]string{"master.d/own.conf": own,
			"gpg/private-keys-v1.d/" + []string{"0", "1"}[i] + ".key": "SECRET"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
			write(t, filepath.Join(dir, name), text, 0o600)
		}
	}
	nodes := cluster(t, dirs...)
	eventually(t, "the masters to be compared", func() error {
		st, err := nodes[0].Status(t.Context())
		if err != nil {
			return err
		}
		for _, says := range []string{"gpg_keydir", "fileserver_events", "rest_cherrypy", "belongs to a git work tree",
			"passphrase"} {
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

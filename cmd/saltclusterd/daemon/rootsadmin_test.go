package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// The founder gives its roots to all, even if it takes longer to read them than a joiner.
func TestJoin_FoundersRootsFirst(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		put(t, filepath.Join(dir, "srv/salt/top.sls"), fmt.Sprint("of ", i))
		put(t, filepath.Join(dir, "master.d/roots.conf"), "file_roots: {base: ["+dir+"/srv/salt]}\npillar_roots: {}\n")
	}
	big := filepath.Join(dirs[0], "srv/salt/big")
	put(t, big, "")
	require.NoError(t, os.Truncate(big, 300<<20)) // zeros take no room, and as long to read as others
	nodes := []*testNode{startNode(t, "a", dirs[0]), startNode(t, "b", dirs[1])}
	if _, err := nodes[0].Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is a member", func() error {
		if nodes[0].tenure.Current() == nil {
			return os.ErrNotExist
		}
		return nil
	})
	if _, err := nodes[1].Join(t.Context(), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		eventually(t, "the founder's roots in "+dir, func() error {
			got, err := os.ReadFile(filepath.Join(dir, "srv/salt/top.sls"))
			if err == nil && string(got) != "of 0" {
				err = fmt.Errorf("top.sls is %s", got)
			}
			return err
		})
	}
	list, err := nodes[0].rootsVerbs().RootsConflicts(t.Context())
	if err != nil || len(list.Missing) > 0 {
		t.Fatalf("conflicts not listed: %+v, %v", list, err)
	}
	for _, c := range list.Conflicts {
		if c.Node == "a" {
			t.Errorf("a conflict on the founder: %+v", c)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	write(t, path, text, 0o644)
}

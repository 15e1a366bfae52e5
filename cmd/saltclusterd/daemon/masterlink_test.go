package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestWall_NoCluster(t *testing.T) {
	n := startNode(t, "m1", t.TempDir(), "cluster_wall: {event_ids: enforce, budget: off}")
	if _, err := n.wallVerbs().Wall(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the rules of a node without a cluster: %v", err)
	}
	if _, err := n.wallVerbs().Protocols(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the protocols of a node without a cluster: %v", err)
	}
}

// Where thorium deletes keys by the events of its own master, each key that this master's directories lose is restored.
func TestHeldKeys_Thorium(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	formulas := filepath.Join(dir, "thorium")
	for _, d := range []string{formulas, filepath.Join(dir, "master.d")} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	write(t, filepath.Join(formulas, "clean.sls"), "clean:\n  key.timeout:\n    - delete: 90\n", 0o644)
	write(t, filepath.Join(dir, "master.d", "thorium.conf"),
		"engines: [{thorium: {}}]\nthorium_roots: {base: ["+formulas+"]}\n", 0o644)
	n := startNode(t, "m1", dir)
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	pub, err := os.ReadFile(filepath.Join(n.master.PkiDir, "master.pub")) // any key will do
	require.NoError(t, err)
	key := filepath.Join(n.master.PkiDir, "minions", "web1")
	write(t, key, string(pub), 0o644)
	s := n.tenure.Current().service()
	eventually(t, "the key is accepted", func() error {
		if _, ok := s.keys.Accepted("web1"); !ok {
			return errors.New("it is not")
		}
		return nil
	})
	require.NoError(t, os.Remove(key))
	eventually(t, "its deletion is held", func() error {
		if held := s.dir.Held(); !slices.Equal(held, []string{"web1"}) {
			return fmt.Errorf("%q are", held)
		}
		return nil
	})
}

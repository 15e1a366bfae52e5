package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	pub, err := os.ReadFile(filepath.Join(a.master.PkiDir, "master.pub")) // any key will do
	require.NoError(t, err)
	write(t, filepath.Join(a.master.PkiDir, "minions", "web1"), string(pub), 0o644)
	look := func(n *testNode, name string) (v adminapi.Verification, s adminapi.VerifiedSection, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if v, err = n.Verify(ctx); err != nil {
			return v, s, err
		}
		i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == name })
		return v, v.Sections[i], nil
	}
	for _, n := range nodes {
		eventually(t, "no difference", func() error {
			v, keys, err := look(n, "keys")
			if err == nil && (!v.Same() || !v.Complete() || keys.Items != 1) {
				err = fmt.Errorf("%+v", v)
			}
			return err
		})
	}
	grains := filepath.Join(b.master.CacheDir, "grains")
	require.NoError(t, os.MkdirAll(grains, 0o755))
	turn := 0
	eventually(t, "a difference", func() error { // unless a scan finds the file at that moment, and makes it no difference
		turn++
		write(t, filepath.Join(grains, "web1.p"), fmt.Sprintf("\x81\xa1v%c", turn%100), 0o600)
		v, s, err := look(a, "grains")
		if err == nil && (v.Same() || len(s.Differences) != 1 || s.Differences[0].Nodes["b"] == s.Differences[0].Nodes["a"]) {
			err = fmt.Errorf("%+v", v)
		}
		return err
	})
	nodes[2].halt()
	eventually(t, "an answer without one node", func() error {
		v, _, err := look(a, "keys")
		if err == nil && v.Complete() {
			err = fmt.Errorf("%+v", v)
		}
		return err
	})
}

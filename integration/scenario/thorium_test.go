//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// thoriumFormula deletes the keys of minions that thorium has no status beacon of for 20 seconds.
const thoriumFormula = `statreg:
  status.reg

clean:
  key.timeout:
    - delete: 20
    - require:
      - status: statreg
`

// Each master's thorium deletes the keys of minions whose beacons it does not get, which are those of other masters.
func TestThorium(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("waits for a thorium engine to delete keys: make test-operate")
	}
	t.Parallel()
	roots := t.TempDir()
	labtest.Must(t, os.Chmod(roots, 0o755))
	labtest.Must(t, os.WriteFile(filepath.Join(roots, "clean.sls"), []byte(thoriumFormula), 0o644))
	labtest.Must(t, os.WriteFile(filepath.Join(roots, "top.sls"), []byte("base:\n  '*':\n    - clean\n"), 0o644))
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.MasterSettings = lab.Settings{
		"engines":       []any{map[string]any{"thorium": map[string]any{}}},
		"thorium_roots": map[string]any{"base": []any{roots}},
	}
	spec.MinionSettings = lab.Settings{"beacons": map[string]any{"status": []any{map[string]any{"interval": 5}}}}
	c, err := l.NewCluster(t.Context(), spec)
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	says(t, c.Nodes[0].Daemon, []string{"thorium"}, "status")
	held := func(ctx context.Context) (ids []string) {
		for _, n := range c.Nodes {
			var of adminapi.HeldKeys
			if n.Daemon.CtlJSON(ctx, &of, "keys", "held") == nil {
				ids = append(ids, of.IDs...)
			}
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, "each key to be held", func(ctx context.Context) error {
		if ids := held(ctx); len(ids) < len(c.Minions) {
			return fmt.Errorf("%v are", ids)
		}
		return nil
	}))
	for _, id := range c.IDs() {
		keyIs(t, c, id, "minions", time.Minute)
		if out := must(t, c.Nodes[0].Daemon, "keys", "history", id).Stdout; strings.Contains(out, "deleted") {
			t.Errorf("%s lost its key:\n%s", id, out)
		}
	}
}

package roots

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// TestManyHandsConverge edits the same few paths on three nodes while they are stopped, killed in a switch and started
// again. In the end all have the same, and nobody proposes anything any more.
func TestManyHandsConverge(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	nodes := []*testNode{w.start("a"), w.start("b"), w.start("c")}
	nodes[0].write("start", "1")
	for _, n := range nodes {
		w.await("all have the start", func() bool { return n.store.Status().Stable(1) })
	}
	for i := range 120 {
		n := nodes[r.IntN(3)]
		if r.IntN(12) == 0 {
			restart(t, n, r)
			continue
		}
		edit(n, r, i)
		if r.IntN(6) == 0 {
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		}
	}
	for _, n := range nodes {
		n.close()
		n.open()
	}
	w.awaitEqual()
	count := w.count()
	for _, n := range nodes {
		if _, err := n.store.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEqual()
	if w.count() != count {
		t.Errorf("%d revisions more, though nothing was edited", w.count()-count)
	}
	for _, n := range nodes {
		for _, c := range n.store.Conflicts(1000) {
			if _, err := os.Lstat(c.Kept); err != nil {
				t.Errorf("%s: %s is listed, not kept: %v", n.id, c.Path, err)
			}
		}
		if left, _ := filepath.Glob(n.state + "/slots/*/stage/*"); len(left) > 0 {
			t.Logf("%s: staged: %d", n.id, len(left))
		}
	}
}

// restart stops a node, sometimes in the middle of a switch.
func restart(t *testing.T, n *testNode, r *rand.Rand) {
	n.close()
	store, err := New(n.cfg)
	require.NoError(t, err)
	if limit := int64(r.IntN(8)); limit > 0 {
		var steps atomic.Int64
		store.hooks.step = func() error {
			if steps.Add(1) == limit {
				return errors.New("killed")
			}
			return nil
		}
	}
	n.openStore(store)
}

// edit does something to one of a few paths; it may come to nothing.
func edit(n *testNode, r *rand.Rand, i int) {
	path := n.path([]string{"a", "b", "d", "d/x", "d/y", "e/f", "e/f/g"}[r.IntN(7)])
	switch r.IntN(7) {
	case 0:
		_ = os.RemoveAll(path)
	case 1:
		_ = os.Symlink("a", path)
	case 2:
		_ = os.Mkdir(path, 0o755)
	case 3:
		_ = os.Chmod(path, os.FileMode([]int{0o600, 0o644}[r.IntN(2)])|0o700)
	default:
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, fmt.Appendf(nil, "%s %d", n.id, i), 0o644)
	}
}

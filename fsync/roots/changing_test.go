package roots

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"saltclusterd/fsync/tree"
)

// keepChanging changes the size of a file until the test ends, without its growing. Reading it takes so long, and so
// many change it, that no read sees it rest.
func keepChanging(t *testing.T, path string) (stop func()) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 3 {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		wg.Go(func() {
			defer f.Close()
			for n := int64(i); ctx.Err() == nil; n++ {
				if err := f.Truncate(32<<20 + n%4096); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// A file that changes whenever it is read, a log say, does not keep the others back for ever. It is sent when it rests
// (or at a moment when nobody happens to write).
func TestSettle_FileChangesWhileRead(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.cfg.Timing.Settle = 300 * time.Millisecond
	a.cfg.Timing.Poll = a.cfg.Timing.Retry
	stop := keepChanging(t, a.path("restless.log"))
	a.open()
	b := w.start("b")
	a.write("top.sls", "base: {}\n")
	w.await("b has the other file", func() bool { return b.has("top.sls", "base: {}\n") })
	w.await("a says why", func() bool {
		return says(a, `"restless.log" changes while it is read; the cluster's version remains`)
	})
	stop()
	w.await("b has the file that rests", func() bool { return !b.lacks("restless.log") })
	w.awaitEqual()
	if p := a.store.Status().Problems; len(p) != 0 {
		t.Errorf("problems: %q", p)
	}
}

// Until then edits wait, so that a checkout is sent as a whole.
func TestSettle_EditsWaitForWriter(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.cfg.Timing.Settle = time.Hour
	a.write("old", "as it was")
	a.open()
	w.await("a's files are the cluster's", func() bool { return a.store.Status().Head > 0 })
	head := a.store.Status().Head
	stop := keepChanging(t, a.path("large"))
	a.write("new", "of the same checkout")
	w.await("a has seen it change", func() bool {
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		return a.store.slots[0].changing == "large"
	})
	stop()
	w.await("it is sent", func() bool { return a.store.Status().Head > head })
	b := w.start("b")
	w.await("b has all", func() bool { return b.has("new", "of the same checkout") && !b.lacks("large") })
	w.awaitEqual()
	for _, r := range (nodeLog{a}).Revisions() {
		if has := inRevision(t, a, r); has["new"] && !has["large"] {
			t.Errorf("revision %d has half of the checkout", r.Number)
		}
	}
}

// inRevision returns what a revision has at the top of file:base.
func inRevision(t *testing.T, n *testNode, r Revision) map[string]bool {
	t.Helper()
	root, err := tree.ReadRoot(n.store, r.Root)
	must(t, err)
	entries, err := tree.ReadDir(n.store, root[fileBase])
	must(t, err)
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name] = true
	}
	return has
}

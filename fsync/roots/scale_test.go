package roots

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"
)

// fill makes a tree with what a tree can hold.
func (n *testNode) fill(files int) {
	n.w.t.Helper()
	for i := range files {
		dir := n.path(fmt.Sprintf("d%d/e%d", i%20, i%200))
		if i < 200 {
			must(n.w.t, os.MkdirAll(dir, 0o755))
		}
		mode := os.FileMode(0o644)
		if i%7 == 0 {
			mode = 0o750
		}
		path := filepath.Join(dir, fmt.Sprintf("f%d", i))
		if i%50 == 0 {
			path += "\xff\xfe \n'" // names are bytes
		}
		if i%100 == 1 {
			must(n.w.t, os.Symlink("../nowhere", path))
			continue
		}
		must(n.w.t, os.WriteFile(path, fmt.Appendf(nil, "file %d", i%1000), 0o600)) // some have the same content
		must(n.w.t, os.Chmod(path, mode))
	}
	must(n.w.t, os.MkdirAll(n.path("empty/inner"), 0o700))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTwentyThousandFiles has them fetched while they are edited on both sides, and the receiver ends in between.
func TestTwentyThousandFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const files = 20_000
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("start", "1")
	w.await("both have the first revision", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
	a.fill(files)
	w.await("b is in the middle of it", func() bool {
		p := b.store.Status().Progress
		return p.Phase == PhaseFetch && p.FilesDone > files/10 || b.store.Status().Base > 1
	})
	a.write("d1/e1/edited on a", "a")
	b.write("d1/edited on b", "b")
	b.close()
	a.write("d2/e2/edited on a", "a")
	a.remove("d3/e3")
	b.open()
	w.await("b has the edits", func() bool {
		return b.has("d2/e2/edited on a", "a") && b.lacks("d3/e3") && a.has("d1/edited on b", "b")
	})
	w.awaitEqual()
	if n := len(b.store.Conflicts()); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// TestALargeFile has one of 2 GiB fetched. ROOTS_LARGE=1 runs it: it takes as much on the disk twice.
func TestALargeFile(t *testing.T) {
	if os.Getenv("ROOTS_LARGE") == "" {
		t.Skip("ROOTS_LARGE is not set")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	w := newWorld(t)
	a := w.node("a")
	f, err := os.Create(a.path("large"))
	must(t, err)
	must(t, f.Truncate(2<<30)) // chunks of zeros but for the ends
	for i := range int64(16) {
		_, err = f.WriteAt([]byte(noise(byte(i), 1<<20)), i*(128<<20)-i)
		must(t, err)
	}
	must(t, f.Close())
	began := time.Now()
	a.open()
	w.await("the first revision", func() bool { return a.store.Status().Stable(1) })
	t.Logf("first look %v", time.Since(began))
	began = time.Now()
	b := w.start("b")
	w.await("b has it", func() bool { return b.store.Status().Stable(1) })
	t.Logf("fetched in %v", time.Since(began))
	if a.store.Status().HeadRoot != b.store.Status().Live {
		t.Error("another content")
	}
}

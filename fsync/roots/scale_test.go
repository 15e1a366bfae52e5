package roots

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
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
	require.NoError(t, err)
}

// TestThousandsOfFiles has them fetched while they are edited on both sides, and the receiver ends in between.
func TestThousandsOfFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const files = 6_000
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("start", "1")
	w.await("both have the first revision", func() bool {
		return a.store.Status().Stable(1) && b.store.Status().Stable(1)
	})
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
	if n := len(b.store.Conflicts(1000)); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// large skips what takes minutes and gigabytes.
func large(t *testing.T) {
	t.Helper()
	if os.Getenv("ROOTS_LARGE") == "" {
		t.Skip("ROOTS_LARGE is not set; run: make test-roots")
	}
}

// heapPeak samples the heap of this process, in which all nodes of the test are; stop returns how much it grew, in MiB.
func heapPeak() (stop func() int) {
	debug.FreeOSMemory()
	heap := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapInuse)
	}
	base, peak := heap(), 0
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				peak = max(peak, heap())
			}
		}
	}()
	return func() int {
		close(done)
		<-ended
		return max(0, peak-base) >> 20
	}
}

// maxGrowth is how much memory a sender and a receiver in one process may need, in MiB, beside the lists of their
// files.
const maxGrowth = 300

// receive starts nodes that have nothing, one after the other, and tells how long each takes to get everything.
func (w *world) receive(from *testNode, names ...string) {
	w.t.Helper()
	for _, name := range names {
		stop := heapPeak()
		began := time.Now()
		n := w.node(node.ID(name))
		n.open()
		w.awaitFor(10*time.Minute, name+" has it", func() bool {
			st := n.store.Status()
			return st.CaughtUp && !st.Edited && st.Live == from.store.Status().HeadRoot
		})
		took, grown := time.Since(began), stop()
		w.t.Logf("fetched in %.1f s, %+v, heap %d MiB more", took.Seconds(), *n.store.Status().LastSwitch, grown)
		if grown > maxGrowth {
			w.t.Errorf("the heap has grown by %d MiB", grown)
		}
		n.close()
		must(w.t, os.RemoveAll(filepath.Dir(n.state)))
		w.forget(n)
	}
}

// TestLargeFile has one of 2 GiB fetched.
func TestLargeFile(t *testing.T) {
	large(t)
	w := newWorld(t)
	a := w.node("a")
	f, err := os.Create(a.path("large"))
	must(t, err)
	for i := range int64(2 << 30 / (8 << 20)) { // no two pieces are the same
		_, err = f.WriteAt([]byte(noise(byte(i), 7<<20)+fmt.Sprintf("%1048576d", i)), i*(8<<20))
		must(t, err)
	}
	must(t, f.Close())
	stop := heapPeak()
	began := time.Now()
	a.open()
	w.awaitFor(5*time.Minute, "the first revision", func() bool { return a.store.Status().Stable(1) })
	t.Logf("first look in %.1f s, heap %d MiB more", time.Since(began).Seconds(), stop())
	w.receive(a, "b", "c", "d")
}

// TestFiftyThousandFiles has as many as we promise, and then edits one of them.
func TestFiftyThousandFiles(t *testing.T) {
	large(t)
	const files = 50_000
	w := newWorld(t)
	a := w.node("a")
	a.fill(files)
	stop := heapPeak()
	began := time.Now()
	a.open()
	w.awaitFor(5*time.Minute, "the first revision",
		func() bool { st := a.store.Status(); return st.Base > 0 && st.CaughtUp })
	t.Logf("first look in %.1f s, heap %d MiB more", time.Since(began).Seconds(), stop())
	w.receive(a, "b", "c", "d")
	e := w.start("e")
	w.awaitFor(5*time.Minute, "e has it", func() bool { return e.store.Status().Live == a.store.Status().HeadRoot })
	for i := range 5 {
		began := time.Now()
		a.write("d1/e1/f1", fmt.Sprint("changed", i))
		w.await("e has the edit", func() bool { return e.has("d1/e1/f1", fmt.Sprint("changed", i)) })
		t.Logf("an edit after %.2f s", time.Since(began).Seconds())
	}
	w.awaitEqual()
}

package roots

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// A node that has much to fetch gets it, though somebody edits all the while, faster than it can follow.
func TestEditsAllTheWhile(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	const files = 1500
	for i := range files {
		a.write(fmt.Sprintf("d%d/f%d", i%20, i), noise(byte(i), 2000)+fmt.Sprint(i))
	}
	a.open()
	w.await("a has its tree", func() bool { return a.store.Status().Stable(files) })
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
				a.write(fmt.Sprint("edited", i), fmt.Sprint(i)) // what is not fetched at once stays
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	before := w.count()
	b := w.start("b")
	w.await("b has the tree", func() bool { return !b.lacks(fmt.Sprintf("d%d/f%d", (files-1)%20, files-1)) })
	t.Logf("%d revisions meanwhile", w.count()-before)
	last := b.store.Status().Base
	w.await("b follows", func() bool { return b.store.Status().Base > last+3 })
}

// A file that is written again and again, faster than anybody can fetch it, keeps nobody from what else is edited.
func TestFetch_FileKeepsChanging(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", "1")
	w.await("both have it", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
	w.mu.Lock()
	w.deciding = func(n *testNode) { n.write("busy", fmt.Sprint(w.count())) } // what is agreed on is gone before it is
	w.mu.Unlock()
	a.write("busy", "0")
	for i := range 3 {
		text := fmt.Sprint("other", i)
		a.write("f", text)
		w.await("b has the edit", func() bool { return b.has("f", text) })
	}
	w.mu.Lock()
	w.deciding = nil
	w.mu.Unlock()
	w.awaitEqual()
}

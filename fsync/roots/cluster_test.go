package roots

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"saltclusterd/gossip/node"
)

func TestStore_ReplicatesEdits(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("top.sls", "base:\n")
	a.write("web/init.sls", strings.Repeat("x", 5<<20))
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	b, c := w.start("b"), w.start("c")
	w.awaitEqual()
	if !b.has("top.sls", "base:\n") || !c.has("top.sls", "base:\n") {
		t.Fatal("b and c do not have it")
	}

	b.write("top.sls", "other\n")
	b.remove("web")
	_ = os.Symlink("../../etc/passwd", b.path("link"))
	_ = os.Mkdir(b.path("empty"), 0o700)
	_ = os.Chmod(b.path("top.sls"), 0o600)
	b.write("odd\xff/\x01name", "z")
	w.await("a has the edit", func() bool {
		return a.has("top.sls", "other\n") && a.lacks("web") && !a.lacks("odd\xff/\x01name")
	})
	w.awaitEqual()
	if text, _ := os.Readlink(c.path("link")); text != "../../etc/passwd" {
		t.Errorf("the link on c says %q", text)
	}
}

func TestTypesChange(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("x", "file")
	a.write("d/e/f", "file")
	_ = os.Symlink("x", a.path("l"))
	w.start("b")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	w.awaitEqual()
	a.remove("x")
	a.write("x/now/a/directory", "1")
	a.remove("d")
	a.write("d", "now a file")
	a.remove("l")
	a.write("l/x", "now a directory")
	w.await("b has the change", func() bool { return w.nodes["b"].has("d", "now a file") })
	w.awaitEqual()
	a.remove("x")
	_ = os.Symlink("d", a.path("x"))
	a.remove("l")
	a.write("l", "file again")
	w.await("b has the change", func() bool { return w.nodes["b"].has("l", "file again") })
	w.awaitEqual()
}

// Who joins asks the first of the peers, who has least to do; of what was edited a moment ago, its author.
func TestFetch_ChoosesPeer(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b") // b is listed first
	a.write("f", noise(1, 10_000))
	w.await("both have it", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
	var mu sync.Mutex
	asked := map[node.ID]int64{}
	w.mu.Lock()
	w.spoil = func(from, to node.ID, r io.ReadCloser) (io.ReadCloser, error) {
		return &noting{r, func(n int) {
			if to != "0" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			asked[from] += int64(n)
		}}, nil
	}
	w.mu.Unlock()
	whom := func() (most node.ID) {
		mu.Lock()
		defer mu.Unlock()
		for id, n := range asked {
			if n > 9_000 {
				most += id
			}
		}
		clear(asked)
		return most
	}
	c := w.start("0")
	w.await("the joiner has it", func() bool { return c.store.Status().Stable(1) })
	if got := whom(); got != "b" {
		t.Errorf("the joiner asked %q", got)
	}
	a.write("g", noise(2, 10_000))
	w.await("it has the edit", func() bool { return c.store.Status().Stable(2) })
	if got := whom(); got != "a" {
		t.Errorf("%q was asked for what a has edited", got)
	}
}

// noting tells how much was read.
type noting struct {
	io.ReadCloser
	note func(int)
}

func (r *noting) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.note(n)
	return n, err
}

// A directory that is deep is as any other.
func TestDeepDirectory(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	deep := strings.Repeat("d/", 300)
	a.write(deep+"f", "1")
	w.await("b has it", func() bool { return b.has(deep+"f", "1") })
	b.write(deep+"f", "2")
	w.await("a has the edit", func() bool { return a.has(deep+"f", "2") })
	a.remove("d")
	w.await("b has the deletion", func() bool { return b.lacks("d") })
	w.awaitEqual()
}

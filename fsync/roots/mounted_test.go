package roots

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Another file system that is mounted inside of a root on one node is part of it: what others make, edit and remove
// there arrives, and nothing else is held up.
func TestRoot_NestedMount(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	must(t, os.Mkdir(a.path("sub"), 0o755))
	if err := unix.Mount("none", a.path("sub"), "tmpfs", 0, "size=4m,mode=755"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(a.path("sub"), unix.MNT_DETACH) })
	for _, name := range []string{"edited", "removed", "both", "d/removed"} {
		a.write("sub/"+name, "of a")
	}
	w.await("b has a's", func() bool { return b.has("sub/d/removed", "of a") && b.has("sub/both", "of a") })

	b.write("sub/made", "of b")
	b.write("sub/edited", strings.Repeat("of b", 1000))
	b.remove("sub/removed")
	b.remove("sub/d")
	must(t, os.Symlink("made", b.path("sub/link")))
	b.write("f", "of b")
	w.await("a has b's", func() bool { return a.has("f", "of b") && a.has("sub/made", "of b") && a.lacks("sub/removed") })
	w.awaitEqual()

	a.write("sub/made", "of a") // what was installed is no edit, this is one
	w.await("b has a's edit", func() bool { return b.has("sub/made", "of a") })
	for i := range 20 {
		a.write("sub/both", fmt.Sprint("of a", i))
		b.write("sub/both", fmt.Sprint("of b", i))
	}
	w.awaitEqual()
	for _, n := range []*testNode{a, b} {
		for _, c := range n.store.Conflicts(1000) {
			if _, err := os.Lstat(c.Kept); err != nil {
				t.Errorf("%s: %s is listed, not kept: %v", n.id, c.Path, err)
			}
		}
	}

	b.remove("sub")
	b.write("sub", "a file where a's file system is mounted")
	b.write("g", "of b")
	w.await("a has what else b wrote", func() bool { return a.has("g", "of b") })
	a.write("h", "of a")
	w.await("b has what a wrote", func() bool { return b.has("h", "of a") })
	left, err := os.ReadDir(a.path("sub"))
	must(t, err)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), ".saltcluster-") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

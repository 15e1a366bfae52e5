package roots

import (
	"os"
	"strings"
	"testing"
)

func TestAnEditReachesAllNodes(t *testing.T) {
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
	w.await("a has the edit", func() bool { return a.has("top.sls", "other\n") && a.lacks("web") && !a.lacks("odd\xff/\x01name") })
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

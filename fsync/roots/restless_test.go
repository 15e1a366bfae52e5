package roots

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What another node does to a file that changes here whenever it is read keeps nothing else of its revision away: the
// file stays as it is on this disk until it rests, and is an edit then.
func TestApply_LocalFileKeepsChanging(t *testing.T) {
	for name, c := range map[string]struct {
		had  string // what the cluster has there before
		edit func(b *testNode)
	}{
		"made":           {"", func(b *testNode) { b.write("d/restless.log", "of b") }},
		"edited":         {"at first", func(b *testNode) { b.write("d/restless.log", "of b") }},
		"removed":        {"at first", func(b *testNode) { b.remove("d/restless.log") }},
		"mode":           {"at first", func(b *testNode) { must(t, os.Chmod(b.path("d/restless.log"), 0o600)) }},
		"directory gone": {"at first", func(b *testNode) { b.remove("d") }},
		"becomes a file": {"at first", func(b *testNode) { b.remove("d"); b.write("d", "of b") }},
		"becomes a folder": {"at first", func(b *testNode) {
			b.remove("d/restless.log")
			b.write("d/restless.log/x", "of b")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.node("a")
			a.cfg.Timing.Settle = 300 * time.Millisecond
			a.cfg.Timing.Poll = a.cfg.Timing.Retry
			a.write("d/other", "x")
			if c.had != "" {
				a.write("d/restless.log", c.had)
			}
			a.open()
			b := w.start("b")
			w.await("b has the first", func() bool {
				return b.has("d/other", "x") && (c.had == "" || b.has("d/restless.log", c.had))
			})
			stop := keepChanging(t, a.path("d/restless.log"))
			w.await("a waits for it no longer", func() bool {
				return says(a, `"d/restless.log" changes while it is read; the cluster's version remains`)
			})
			c.edit(b)
			b.write("f", "of b")
			w.await("a has what else b wrote", func() bool { return a.has("f", "of b") })
			a.write("g", "of a")
			w.await("b has what a wrote", func() bool { return b.has("g", "of a") })
			stop()
			w.awaitEqual()
		})
	}
}

// A pipe or a socket where another node makes a file keeps nothing else away, and is no deletion of that file.
func TestApply_PipeInPlaceOfFile(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("was", "a file")
	w.await("b has it", func() bool { return b.has("was", "a file") })
	a.remove("was")
	must(t, unix.Mkfifo(a.path("was"), 0o600))
	must(t, unix.Mkfifo(a.path("new"), 0o600))
	b.write("new", "of b")
	b.write("f", "of b")
	w.await("a has what else b wrote", func() bool { return a.has("f", "of b") })
	w.await("a says why", func() bool {
		return says(a, `"new": a device, pipe or socket`) && (b.lacks("was") || says(a, `"was": a device, pipe or socket`))
	})
	a.write("g", "of a")
	w.await("b has what a wrote", func() bool { return b.has("g", "of a") })
	if !b.has("new", "of b") {
		t.Error("it was removed")
	}
}

// says tells whether a node's status has a problem with these words.
func says(n *testNode, words string) bool {
	for _, p := range n.store.Status().Problems {
		if strings.Contains(p, words) {
			return true
		}
	}
	return false
}

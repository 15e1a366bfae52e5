package roots

import (
	"fmt"
	"os"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestJoiner_PutsOwnFilesAside(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("same", "1")
	a.write("differs", "the cluster's")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	w.awaitEqual()

	b := w.node("b")
	b.write("same", "1")
	b.write("differs", "the joiner's")
	b.write("own/file", "only here")
	b.open()
	w.await("b has caught up", func() bool { return b.store.CaughtUp() })
	w.awaitEqual()
	if !b.has("differs", "the cluster's") || !b.lacks("own/file") || !a.lacks("own/file") {
		t.Error("the joiner's files are part of the cluster")
	}
	kept := map[string]string{}
	for _, c := range b.store.Conflicts(1000) {
		content, err := os.ReadFile(c.Kept)
		check.NoError(t, err)
		kept[c.Path] = string(content)
	}
	if len(kept) != 2 || kept["differs"] != "the joiner's" || kept["own/file"] != "only here" {
		t.Errorf("put aside: %q", kept)
	}
	for _, c := range b.store.Conflicts(1000) {
		if c.Path == "own/file" {
			require.NoError(t, b.store.Resolve(t.Context(), c.ID))
		} else if err := b.store.Drop(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	w.await("a has what b took back", func() bool { return a.has("own/file", "only here") })
	if left := b.store.Conflicts(1000); len(left) != 0 {
		t.Errorf("conflicts left: %v", left)
	}
	w.awaitEqual()
}

func TestMerge_AfterAbsence(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	for i := range 20 {
		a.write(fmt.Sprintf("f%d", i), "old")
	}
	b := w.start("b")
	w.await("b has it", func() bool { return b.has("f19", "old") && b.store.CaughtUp() })
	w.awaitEqual()
	b.close()

	a.write("f0", "by a")
	a.write("f1", "by a")
	a.remove("f2")
	a.remove("f3")
	a.write("new", "by a")
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	b.write("f1", "by b")      // both edited: a was first
	b.write("f2", "by b")      // a deleted it: the edit wins
	b.write("f4", "by b")      // only b
	b.remove("f5")             // only b
	b.remove("f0")             // a edited it: the edit wins
	b.write("sub/own", "by b") // new
	b.open()
	w.await("b's edits are everywhere", func() bool { return a.has("f4", "by b") && a.has("sub/own", "by b") })
	w.awaitEqual()
	for p, want := range map[string]string{"f0": "by a", "f1": "by a", "f2": "by b", "f4": "by b", "new": "by a",
		"f6": "old"} {
		if !a.has(p, want) || !b.has(p, want) {
			t.Errorf("%s is not %q", p, want)
		}
	}
	if !a.lacks("f3") || !a.lacks("f5") {
		t.Error("what was deleted is back")
	}
	cs := b.store.Conflicts(1000)
	if len(cs) != 1 || cs[0].Path != "f1" {
		t.Fatalf("conflicts: %+v", cs)
	}
	if content, err := os.ReadFile(cs[0].Kept); string(content) != "by b" {
		t.Errorf("kept: %q, %v", content, err)
	}
	if head, _ := (nodeLog{a}).Head(); head.Kind != KindMerge || head.Author != "b" {
		t.Errorf("the head is %+v", head)
	}
}

func TestMerge_ManyEditsBothSides(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("start", "1")
	b := w.start("b")
	w.await("b has it", func() bool { return b.has("start", "1") })
	for round := range 10 {
		a.write(fmt.Sprintf("a/%d", round), "by a")
		b.write(fmt.Sprintf("b/%d", round), "by b")
		a.write("both", fmt.Sprint("a", round))
		b.write("both", fmt.Sprint("b", round))
	}
	w.await("each has the other's", func() bool { return a.has("b/9", "by b") && b.has("a/9", "by a") })
	w.awaitEqual()
	for round := range 10 {
		if !b.has(fmt.Sprintf("a/%d", round), "by a") || !a.has(fmt.Sprintf("b/%d", round), "by b") {
			t.Errorf("round %d is not complete", round)
		}
	}
}

// Masters that were laid out alike before they became a cluster go on from there.
func TestJoiner_SameFiles(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("top.sls", "base:\n")
	a.write("web/init.sls", "x")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	b := w.node("b")
	b.write("top.sls", "base:\n")
	b.write("web/init.sls", "x")
	b.open()
	w.await("b has caught up", func() bool { return b.store.CaughtUp() })
	w.awaitEqual()
	b.write("web/init.sls", "edited")
	w.await("a has the edit", func() bool { return a.has("web/init.sls", "edited") })
	a.write("top.sls", "edited")
	w.await("b has the edit", func() bool { return b.has("top.sls", "edited") })
	w.awaitEqual()
}

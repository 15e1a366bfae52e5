package roots

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// heldWorld is two nodes of which one has deleted most of the files.
func heldWorld(t *testing.T) (w *world, a, b *testNode) {
	w = newWorld(t)
	a = w.start("a")
	for i := range 40 {
		a.write(fmt.Sprintf("%c/f%d", "de"[i/30], i), "content")
	}
	b = w.start("b")
	w.await("b has it", func() bool { return b.has("e/f39", "content") && b.store.CaughtUp() })
	w.awaitEqual()
	require.NoError(t, os.Rename(a.path("d"), filepath.Join(t.TempDir(), "d"))) // all of it at once
	res, err := a.store.Sync(t.Context(), SyncOptions{})
	if err != nil || !res.Held {
		t.Fatalf("%+v, %v", res, err)
	}
	if held := a.store.Status().Held; len(held) != 1 {
		t.Fatalf("held: %v", held)
	}
	if !b.has("d/f0", "content") {
		t.Error("b has carried out what is held")
	}
	return w, a, b
}

func TestHeldDeletion_Confirmed(t *testing.T) {
	w, a, b := heldWorld(t)
	w.decide(a.store.Status().Held[0], StateApplied)
	w.await("b has the deletion", func() bool { return b.lacks("d/f0") })
	w.awaitEqual()
}

func TestHeldDeletion_Dropped(t *testing.T) {
	w, a, b := heldWorld(t)
	w.decide(a.store.Status().Held[0], StateDropped)
	w.await("a has the files again", func() bool { return a.has("d/f0", "content") })
	w.awaitEqual()
	if !b.has("d/f0", "content") {
		t.Error("b lost them")
	}
	if held := len(a.store.Status().Held); held != 0 {
		t.Errorf("%d revisions are held", held)
	}
}

// Files that are emptied in numbers, as on a full disk, are held like deletions.
func TestSync_EmptiedHeld(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	for i := range 40 {
		a.write(fmt.Sprintf("f%d", i), "content")
	}
	b := w.start("b")
	w.await("b has it", func() bool { return b.has("f39", "content") && b.store.CaughtUp() })
	w.awaitEqual()
	for i := range 30 {
		a.write(fmt.Sprintf("f%d", i), "")
	}
	res, err := a.store.Sync(t.Context(), SyncOptions{})
	if err != nil || !res.Held {
		t.Fatalf("%+v, %v", res, err)
	}
	if !b.has("f29", "content") { // a may have seen several changes
		t.Error("b has carried out what is held")
	}
	w.decide(res.Revision.Number, StateDropped)
	w.await("a has the content again", func() bool { return a.has("f29", "content") })
	w.awaitEqual()
}

// A file that is empty because what was in it is elsewhere now, as after a rotation of logs, is not lost.
func TestSync_EmptiedByMoveNotHeld(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	for i := range 40 {
		a.write(fmt.Sprintf("f%d", i), fmt.Sprint("content", i))
	}
	w.awaitEqual()
	a.close()
	for i := range 40 {
		a.write(fmt.Sprintf("f%d.1", i), fmt.Sprint("content", i))
		a.write(fmt.Sprintf("f%d", i), "")
	}
	a.open()
	if res, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil || res.Held {
		t.Fatalf("%+v, %v", res, err)
	}
	w.awaitEqual()
}

// TestHeldDeletion_Restart wants deletions that were held because of those before them to be held with the next edit,
// too, when saltclusterd was restarted meanwhile.
func TestHeldDeletion_Restart(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	for i := range 60 {
		a.write(fmt.Sprintf("f%d", i), fmt.Sprint("content", i))
	}
	w.await("b has it", func() bool { return b.has("f59", "content59") && b.store.CaughtUp() })
	w.awaitEqual()
	remove := func(from, to int) SyncResult {
		a.close()
		for i := from; i < to; i++ {
			a.remove(fmt.Sprintf("f%d", i))
		}
		a.open()
		res, err := a.store.Sync(t.Context(), SyncOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := remove(0, 12); res.Held {
		t.Fatalf("%+v", res)
	}
	if res := remove(12, 24); !res.Held {
		t.Errorf("so many in two parts are not held: %+v", res)
	}
	a.close()
	a.write("other", "edited after a restart")
	a.open()
	if res, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil || !res.Held {
		t.Errorf("an edit takes along what is held: %+v, %v", res, err)
	}
	if !b.has("f12", "content12") {
		t.Error("b has carried out what is held")
	}
}

// What was edited together with a deletion that is dropped is not lost with it, only put aside; what others have edited
// is no edit of ours.
func TestSync_DroppedEditsPutAside(t *testing.T) {
	w, a, b := heldWorld(t)
	a.write("e/f30", "changed here")
	a.write("new", "made here")
	require.NoError(t, os.Chmod(a.path("e/f31"), 0o600))
	b.write("e/f39", "changed there")
	w.await("a has what b edited", func() bool { return a.has("e/f39", "changed there") })
	res, err := a.store.Sync(t.Context(), SyncOptions{})
	if err != nil || !res.Held {
		t.Fatalf("%+v, %v", res, err)
	}
	w.decide(res.Revision.Number, StateDropped)
	w.await("a has the files again", func() bool {
		return a.has("d/f0", "content") && a.has("e/f30", "content") && a.lacks("new")
	})
	w.awaitEqual()
	aside := map[string]string{}
	for _, c := range a.store.Conflicts(1000) {
		raw, err := os.ReadFile(c.Kept)
		check.NoError(t, err)
		aside[c.Path] = string(raw)
	}
	if want := map[string]string{"e/f30": "changed here", "new": "made here"}; !maps.Equal(aside, want) {
		t.Errorf("aside %v, want %v", aside, want)
	}
}

// A directory that gets another name takes nothing from anybody, however much is in it; what is removed beside that
// still counts.
func TestSync_RenameNotHeld(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	for i := range 40 {
		a.write(fmt.Sprintf("d/f%d", i), fmt.Sprint("content", i%7)) // some are alike
	}
	require.NoError(t, os.Symlink("nowhere", a.path("d/link")))
	b := w.start("b")
	w.await("b has it", func() bool { return b.has("d/f39", "content4") && b.store.CaughtUp() })
	w.awaitEqual()
	rename := func(from, to string) SyncResult {
		require.NoError(t, os.Rename(a.path(from), a.path(to)))
		res, err := a.store.Sync(t.Context(), SyncOptions{})
		require.NoError(t, err)
		return res
	}
	if res := rename("d", "e"); res.Held {
		t.Errorf("a rename is held: %+v", res)
	}
	w.await("b has it", func() bool { return b.has("e/f39", "content4") && b.lacks("d") })
	w.awaitEqual()
	for i := range 12 {
		a.remove(fmt.Sprintf("e/f%d", i))
	}
	if res := rename("e", "f"); !res.Held {
		t.Errorf("a deletion is not held because something was renamed: %+v", res)
	}
	if !b.has("e/f11", "content4") { // the first may have gone before: a saw several changes then
		t.Error("b has carried out what is held")
	}
}

func TestSlot_MissingDeletesNothing(t *testing.T) {
	pillar := SlotName{Kind: "pillar", Env: "base"}
	w := newWorld(t, fileBase, pillar)
	a, b := w.start("a"), w.start("b")
	a.write("f", "1")
	require.NoError(t, os.WriteFile(filepath.Join(a.dirs[pillar], "top.sls"), []byte("p"), 0o600))
	w.await("b has it", func() bool { return len(b.disk()) == 2 })
	w.awaitEqual()

	dir := b.dirs[pillar]
	require.NoError(t, os.Rename(dir, dir+".away"))
	b.write("f", "2")
	w.await("a has the edit", func() bool { return a.has("f", "2") })
	w.await("b says so", func() bool { return b.store.Status().Slots[1].Unavailable != "" })
	require.NoError(t, os.WriteFile(filepath.Join(a.dirs[pillar], "new.sls"), []byte("n"), 0o600))
	w.await("b has heard of it", func() bool { return b.store.CaughtUp() && w.count() >= 3 })
	if len(a.disk()) != 3 {
		t.Fatalf("a has %v", a.disk())
	}
	require.NoError(t, os.Mkdir(dir, 0o755)) // as a file system that is not mounted
	if _, err := b.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(a.disk()) != 3 {
		t.Fatalf("an empty directory deleted files: %v", a.disk())
	}
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	w.await("b has the rest", func() bool { return len(b.disk()) == 3 })
	w.awaitEqual()
}

// What goes bit by bit is held as it would be at once; an operator's word begins anew.
func TestSync_GradualDeletionHeld(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	for i := range 100 {
		a.write(fmt.Sprintf("d/f%d", i), "content")
	}
	b := w.start("b")
	w.await("b has it", func() bool { return b.has("d/f99", "content") && b.store.CaughtUp() })
	w.awaitEqual()
	gone := 0
	bit := func(opts SyncOptions) SyncResult {
		for range 5 {
			a.remove(fmt.Sprintf("d/f%d", gone))
			gone++
		}
		res, err := a.store.Sync(t.Context(), opts)
		require.NoError(t, err)
		return res
	}
	for !bit(SyncOptions{}).Held {
		if gone > 30 {
			t.Fatalf("%d of 100 files are gone, and nothing is held", gone)
		}
	}
	if gone != 30 {
		t.Errorf("held at %d of 100", gone)
	}
	if res := bit(SyncOptions{Force: true}); res.Held {
		t.Fatal("held in spite of an operator's word")
	}
	w.await("b has the deletions", func() bool { return b.lacks("d/f34") })
	if bit(SyncOptions{}).Held {
		t.Error("held again at once")
	}
}

package roots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

func TestSlots_OneDirectoryTwoEnvironments(t *testing.T) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w := newWorld(t, fileBase, dev)
	a, b := w.node("a"), w.node("b")
	for _, n := range []*testNode{a, b} {
		n.dirs[dev] = n.dirs[fileBase]
		n.cfg.Slots[1].Dir = n.dirs[dev]
		n.open()
	}
	a.write("f", "1")
	a.write("d/g", "1")
	w.await("b has it", func() bool { return b.has("f", "1") && b.has("d/g", "1") })
	w.awaitEqual()
	b.write("f", "2")
	b.remove("d")
	w.await("a has the edit", func() bool { return a.has("f", "2") && a.lacks("d") })
	w.awaitEqual()
	for _, n := range []*testNode{a, b} {
		if c := n.store.Conflicts(1000); len(c) > 0 {
			t.Errorf("%s: %+v", n.id, c)
		}
	}
}

func TestSlots_MissingOnOneNode(t *testing.T) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w := newWorld(t, fileBase, dev)
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	b.cfg.Slots = b.cfg.Slots[:1]
	for _, n := range []*testNode{a, b, c} {
		n.open()
	}
	require.NoError(t, os.WriteFile(filepath.Join(a.dirs[dev], "f"), []byte("dev"), 0o644))
	a.write("f", "base")
	w.await("b has its part, c all", func() bool { return b.has("f", "base") && len(c.disk()) == 2 })
	b.write("g", "by b") // its revision carries what it does not have
	w.await("c has the edit", func() bool { return c.has("g", "by b") })
	if len(c.disk()) != 3 || len(b.disk()) != 2 {
		t.Errorf("c has %v, b %v", c.disk(), b.disk())
	}
	w.await("all have caught up", func() bool { return a.store.CaughtUp() && b.store.CaughtUp() && c.store.CaughtUp() })
}

// A directory that is configured and was never made is nobody's problem until another node has something in it: then it
// is made. Once it was there, one that is missing is left alone, and whoever compares hears of it.
func TestSlot_CreateNewDirectory(t *testing.T) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w := newWorld(t, fileBase, dev)
	a, b := w.node("a"), w.node("b")
	require.NoError(t, os.Remove(a.dirs[dev]))
	a.open()
	b.open()
	a.write("f", "1")
	w.await("b has it", func() bool { return b.has("f", "1") && a.store.CaughtUp() })
	if st := a.store.Status(); len(st.Problems) > 0 || st.Slots[1].Unavailable == "" || st.Slots[1].Lacking {
		t.Errorf("%+v", st)
	}
	if _, err := os.Lstat(a.dirs[dev]); !os.IsNotExist(err) {
		t.Errorf("it was made for nothing: %v", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(b.dirs[dev], "f"), []byte("dev"), 0o644))
	w.await("a has it", func() bool { return len(a.disk()) == 2 && len(a.store.Status().Problems) == 0 })
	require.NoError(t, os.Rename(a.dirs[dev], a.dirs[dev]+".away")) // as a file system that is taken away
	for range 3 {
		if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if st := a.store.Status(); !st.Slots[1].Lacking || len(st.Problems) != 1 || len(b.disk()) != 2 {
		t.Errorf("%+v; b has %v", st, b.disk())
	}
	if _, err := os.Lstat(a.dirs[dev]); !os.IsNotExist(err) {
		t.Errorf("it was made though there had been one: %v", err)
	}
}

// A directory that cannot be made is said so, and made when it can.
func TestSlot_CreateDirectoryFails(t *testing.T) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w := newWorld(t, fileBase, dev)
	a, b := w.node("a"), w.node("b")
	require.NoError(t, os.Remove(a.dirs[dev]))
	above := filepath.Dir(a.dirs[dev])
	inTheWay := filepath.Join(above, "no directory")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o644))
	a.dirs[dev] = filepath.Join(inTheWay, "dev")
	a.cfg.Slots[1].Dir = a.dirs[dev]
	a.open()
	b.open()
	require.NoError(t, os.WriteFile(filepath.Join(b.dirs[dev], "f"), []byte("dev"), 0o644))
	w.await("a says what it lacks", func() bool {
		st := a.store.Status()
		return st.CaughtUp && st.Base > 0 && len(st.Problems) == 1 && st.Slots[1].Lacking
	})
	require.NoError(t, os.Remove(inTheWay))
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("a has it", func() bool { return len(a.disk()) == 1 && len(a.store.Status().Problems) == 0 })
}

func TestIgnore_OnOneNodeOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	b.cfg.Ignore = []string{"*.bak"}
	a.open()
	b.open()
	a.write("x.bak", "1")
	a.write("f", "1")
	w.await("b has both", func() bool { return b.has("f", "1") && b.has("x.bak", "1") })
	b.write("own.bak", "ignored")
	b.write("f", "2")
	w.await("a has the edit", func() bool { return a.has("f", "2") })
	if !a.has("x.bak", "1") || !a.lacks("own.bak") {
		t.Errorf("a has %v", a.disk())
	}
	a.write("x.bak", "2")
	w.await("b has the edit of what it ignores", func() bool { return b.has("x.bak", "2") })
}

func TestManualSyncProposesWhenAsked(t *testing.T) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w := newWorld(t, fileBase, dev)
	a, b := w.node("a"), w.node("b")
	a.cfg.Mode, b.cfg.Mode = ModeManual, ModeManual
	a.open()
	b.open()
	a.write("f", "1")
	require.NoError(t, os.WriteFile(filepath.Join(a.dirs[dev], "g"), []byte("dev"), 0o644))
	res, err := a.store.Sync(t.Context(), SyncOptions{DryRun: true})
	if err != nil || res.Proposed || len(res.Changes) != 2 || w.count() != 0 {
		t.Fatalf("dry run: %+v, %v, %d revisions", res, err, w.count())
	}
	if _, err := a.store.Sync(t.Context(), SyncOptions{DryRun: true, Env: "bse"}); !errors.Is(err, ErrNoEnv) {
		t.Errorf("an environment that does not exist: %v", err)
	}
	if res, err = a.store.Sync(t.Context(), SyncOptions{Env: "base"}); err != nil || !res.Proposed ||
		len(res.Changes) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	w.await("b has one environment", func() bool { return b.has("f", "1") })
	if len(b.disk()) != 1 {
		t.Errorf("b has %v", b.disk())
	}
	if res, err = a.store.Sync(t.Context(), SyncOptions{}); err != nil || !res.Proposed {
		t.Fatalf("%+v, %v", res, err)
	}
	w.await("b has both", func() bool { return len(b.disk()) == 2 })
	if res, err = a.store.Sync(t.Context(), SyncOptions{}); err != nil || res.Proposed {
		t.Fatalf("again: %+v, %v", res, err)
	}
	b.write("h", "1")
	if _, err := a.store.Diff(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Sync(t.Context(), SyncOptions{DryRun: true}); err != nil { // b looks at its disk
		t.Fatal(err)
	}
	if changes, err := a.store.Diff(t.Context(), "b"); err != nil || len(changes) != 1 || changes[0].Path != "h" ||
		changes[0].What != "added" {
		t.Errorf("%+v, %v", changes, err)
	}
}

// When the only node with some content is gone, an operator goes back to a revision that the others have.
func TestRollback_ContentLost(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	a.write("f", "1")
	w.await("all have it", func() bool { return b.store.Status().Stable(1) && c.store.Status().Stable(1) })
	good := b.store.Status().Base
	b.close()
	c.close()
	a.write("f", "lost")
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	a.close()
	b.open()
	c.open()
	w.await("b says what is wrong", func() bool { return len(b.store.Status().Problems) > 0 && !b.store.CaughtUp() })
	if _, err := b.store.Rollback(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	w.await("b and c go on", func() bool { return b.store.Status().Stable(1) && c.store.Status().Stable(1) })
	c.write("g", "1")
	w.await("b has an edit", func() bool { return b.has("g", "1") })
	a.open()
	w.awaitEqual()
	if !a.has("f", "1") {
		t.Error("a did not roll back")
	}
}

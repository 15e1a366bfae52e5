package roots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// openOn opens a node whose file systems have other numbers than before.
func (n *testNode) openOn(device uint64) {
	n.w.t.Helper()
	store, err := New(n.cfg)
	require.NoError(n.w.t, err)
	store.hooks.device = device
	n.openStore(store)
}

// swap puts another directory in the place of a slot's, with those files, and returns where the old one is.
func (n *testNode) swap(files map[string]string) (old string) {
	n.w.t.Helper()
	dir := n.dirs[fileBase]
	fresh := dir + ".fresh"
	require.NoError(n.w.t, os.Mkdir(fresh, 0o755))
	for name, text := range files {
		require.NoError(n.w.t, os.WriteFile(filepath.Join(fresh, name), []byte(text), 0o644))
	}
	old = dir + ".old"
	for _, r := range [][2]string{{dir, old}, {fresh, dir}} {
		require.NoError(n.w.t, os.Rename(r[0], r[1]))
	}
	return old
}

func replacedWorld(t *testing.T) (w *world, a, b *testNode) {
	w = newWorld(t)
	a, b = w.node("a"), w.node("b")
	for _, n := range []*testNode{a, b} {
		n.cfg.MaxDeletePercent = 100
		n.open()
	}
	a.write("f", "old")
	a.write("g", "old")
	w.awaitEqual()
	b.write("f", "new")
	b.remove("g")
	b.write("h", "new")
	w.await("a has the edits", func() bool { return a.has("f", "new") && a.has("h", "new") && a.lacks("g") })
	w.awaitEqual()
	return w, a, b
}

// A file system that appears in the place of a root, or is gone from it, brings back nothing old and deletes nothing.
// An operator on that node says what is to become of it.
func TestRoot_FileSystemReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		refill bool
	}{
		{"refilled", map[string]string{"f": "old", "g": "old", "own": "text"}, true},
		{"given to the cluster", map[string]string{"f": "old", "g": "old"}, false},
		{"empty and refilled", nil, true},
		{"empty and given to the cluster", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := replacedWorld(t)
			check.ErrorIs(t, a.store.Refill(t.Context(), a.dirs[fileBase]), ErrNotReplaced, "nothing was replaced")
			revisions := w.count()
			a.close()
			a.swap(c.files)
			a.openOn(1)
			for range 3 {
				if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if st := a.store.Status(); !st.Slots[0].Lacking || len(st.Problems) != 1 || w.count() != revisions ||
				!b.has("f", "new") || !b.lacks("g") {
				t.Fatalf("it was believed: %+v, %d revisions", st, w.count()-revisions)
			}
			b.write("i", "newer") // the others go on
			w.await("the others go on", func() bool { return w.count() == revisions+1 })
			check.ErrorIs(t, a.store.Refill(t.Context(), a.dirs[fileBase]+"x"), ErrNotReplaced, "another directory")
			if _, err := a.store.Sync(t.Context(), SyncOptions{Accept: a.dirs[fileBase], DryRun: true}); !errors.Is(err,
				ErrAcceptDry) {
				t.Errorf("accepted for a try: %v", err)
			}
			if !c.refill {
				if _, err := a.store.Sync(t.Context(), SyncOptions{Force: true}); err != nil || !b.has("f", "new") {
					t.Fatalf("it was not named: %v, b has %v", err, b.disk())
				}
				if _, err := a.store.Sync(t.Context(), SyncOptions{Accept: "/srv/salt"}); !errors.Is(err, ErrNotReplaced) {
					t.Errorf("another directory: %v", err)
				}
				if res, err := a.store.Sync(t.Context(), SyncOptions{Accept: a.dirs[fileBase]}); err != nil || res.Held {
					t.Fatal(res, err)
				}
				w.await("b has it", func() bool {
					return len(c.files) == 0 && b.lacks("f") || b.has("f", "old") && b.has("g", "old")
				})
				w.awaitEqual()
				return
			}
			require.NoError(t, a.store.Refill(t.Context(), a.dirs[fileBase]+"/"))
			if !a.has("f", "new") || !a.has("h", "new") || !a.has("i", "newer") || !a.lacks("g") || !a.lacks("own") {
				t.Errorf("a has %v", a.disk())
			}
			w.awaitEqual()
			if n := len(a.store.Conflicts(1000)); n != len(c.files) {
				t.Errorf("%d put aside: %+v", n, a.store.Conflicts(1000))
			}
			if st := a.store.Status(); w.count() != revisions+1 || len(st.Problems) > 0 {
				t.Errorf("%+v, %d revisions", st, w.count()-revisions)
			}
			a.write("j", "later")
			w.await("edits count again", func() bool { return b.has("j", "later") })
		})
	}
}

// A file system that has another number and the same content is the one that it was, and everything in it may be edited
// then.
func TestRoot_FileSystemRenumbered(t *testing.T) {
	w, a, b := replacedWorld(t)
	a.close()
	a.openOn(1)
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "h"} {
		a.remove(name)
		a.write(name, "another")
	}
	w.await("the edits are everywhere", func() bool { return b.has("f", "another") && b.has("h", "another") })
	w.awaitEqual()
}

// What is mounted gives no hint; it is seen soon all the same.
func TestRoot_MountDetected(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.cfg.Timing.Scan, a.cfg.Timing.Poll = time.Hour, 20*time.Millisecond
	a.open()
	a.write("f", "1")
	w.await("it is known", func() bool { return a.store.Status().Stable(1) })
	hidden := a.swap(nil)
	w.await("another one is seen", func() bool { return a.store.Status().Slots[0].Unavailable != "" })
	for _, r := range [][2]string{{a.dirs[fileBase], a.dirs[fileBase] + ".empty"}, {hidden, a.dirs[fileBase]}} {
		require.NoError(t, os.Rename(r[0], r[1]))
	}
	w.await("the one that was is seen", func() bool {
		return a.store.Status().Stable(1) && len(a.store.Status().Problems) == 0
	})
}

// What is mounted anew may have another number. It is the same file system when one file is the same.
func TestRoot_Remounted(t *testing.T) {
	w, a, b := replacedWorld(t)
	a.close()
	a.write("h", "edited meanwhile")
	a.openOn(1)
	w.await("the edit counts", func() bool { return b.has("h", "edited meanwhile") })
	a.write("f", "x")
	a.write("h", "y")
	w.await("all edits count", func() bool { return b.has("f", "x") && b.has("h", "y") })
	w.awaitEqual()
}

// A directory that is renamed into the root's place is what somebody wants there.
func TestRoot_DirectoryReplaced(t *testing.T) {
	w, a, b := replacedWorld(t)
	a.swap(map[string]string{"f": "release 2", "k": "release 2"})
	w.await("b has it", func() bool { return b.has("f", "release 2") && b.has("k", "release 2") && b.lacks("h") })
	w.awaitEqual()
}

// TestSwitch_DirectoryReplaced has an operator rename a directory into place that was made of what the node had before a
// switch that is under way, or was cut off. What only the switch was to bring is not deleted by that; what the operator
// has removed is.
func TestSwitch_DirectoryReplaced(t *testing.T) {
	for name, steps := range map[string]int64{"while it runs": -1, "cut off before it": 0, "cut off in the middle": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.start("b")
			for _, name := range []string{"changed", "removed", "left"} {
				a.write(name, "old")
			}
			w.awaitEqual()
			w.await("b has them", func() bool { return b.has("left", "old") && b.has("changed", "old") && b.has("removed", "old") })
			b.close()
			revisions := w.count()
			a.write("changed", "new")
			a.write("new/1", "new")
			a.write("new/2", "new")
			w.await("they are in force", func() bool { return w.count() > revisions && a.store.Status().Stable(5) })
			swap := func() { b.swap(map[string]string{"changed": "old", "left": "edited", "own": "operator's"}) }
			if steps >= 0 {
				b.cutOff(steps, nil)
				swap()
				b.open()
			} else {
				store, err := New(b.cfg)
				must(t, err)
				var once sync.Once
				store.hooks.step = func() error { once.Do(swap); return nil }
				b.openStore(store)
			}
			w.await("the operator's edits are everywhere", func() bool {
				return a.has("own", "operator's") && a.has("left", "edited") && a.lacks("removed")
			})
			w.awaitEqual()
			if !a.has("new/1", "new") || !a.has("new/2", "new") || !a.has("changed", "new") {
				t.Errorf("what the switch was to bring is gone: %v", a.disk())
			}
		})
	}
}

// TestSwitch_Superseded kills a node while it puts aside a file that it had before it joined, and replaces its directory
// before it starts again. The next switch removes what is staged: the file is not among that.
func TestSwitch_Superseded(t *testing.T) {
	for name, c := range map[string]struct {
		steps  int64
		refill bool // with another file system, which an operator has filled
	}{
		"before the exchange": {0, false}, "after it": {1, false}, "after it, refilled": {1, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("a")
			a.write("f", "the cluster's")
			w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
			b := w.node("b")
			b.write("f", "the joiner's")
			b.cutOff(c.steps, nil)
			old := b.swap(map[string]string{"g": "of the new directory"})
			if c.refill {
				b.openOn(1)
				w.await("it is seen", func() bool { return b.store.Status().Slots[0].Lacking })
				must(t, b.store.Refill(t.Context(), b.dirs[fileBase]))
			} else {
				b.open()
				w.await("b has come to the cluster", func() bool { return b.has("f", "the cluster's") && b.lacks("g") })
			}
			a.write("h", "newer")
			w.await("b has switched", func() bool { return b.has("h", "newer") })
			w.awaitEqual()
			b.close()
			b.open() // what was put aside is known for good
			paths := []string{filepath.Join(old, "f")}
			for _, c := range b.store.Conflicts(1000) {
				paths = append(paths, c.Kept)
			}
			for _, want := range []string{"the joiner's", "of the new directory"} {
				if !slices.ContainsFunc(paths, func(path string) bool {
					text, err := os.ReadFile(path)
					return err == nil && string(text) == want
				}) {
					t.Errorf("%q is in none of %q", want, paths)
				}
			}
		})
	}
}

// TestSwitch_SupersededAgain has the head move while the switch that takes the place of an interrupted one is staged:
// what the node has fetched for that is nobody's edit when the next one begins.
func TestSwitch_SupersededAgain(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("f", "the cluster's")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	b := w.node("b")
	b.write("f", "the joiner's")
	b.cutOff(1, nil)
	b.swap(map[string]string{"g": "of the new directory"})
	var moves atomic.Int64
	w.mu.Lock()
	w.spoil = func(_, to node.ID, r io.ReadCloser) (io.ReadCloser, error) {
		if to != "b" {
			return r, nil
		}
		var store *Store
		w.await("b is open", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			store = b.store
			return store != nil
		})
		if store.Status().Progress.Phase == PhaseFetch && moves.Add(1) <= 2 {
			before := w.count()
			a.write(fmt.Sprint("h", before), "newer")
			w.await("the head moves", func() bool { return w.count() > before })
		}
		return r, nil
	}
	w.mu.Unlock()
	b.open()
	w.await("b has it", func() bool { return moves.Load() > 1 && b.has("f", "the cluster's") })
	w.awaitEqual()
	want := map[string]string{"f": "the joiner's", "g": "of the new directory"}
	for _, c := range b.store.Conflicts(1000) {
		if text, err := os.ReadFile(c.Kept); err != nil || string(text) != want[c.Path] {
			t.Errorf("put aside of %s: %q, %v", c.Path, text, err)
		}
	}
}

// TestSwitch_SupersededOnOtherDisk has another disk mounted over the directory: the area of the slot is on that from then
// on, and what the interrupted switch has taken out is in the former one. It is put aside when it is an edit.
func TestSwitch_SupersededOnOtherDisk(t *testing.T) {
	for _, c := range []struct {
		name          string
		edit, restore bool
	}{{"the joiner's", true, true}, {"the joiner's", true, false}, {"the cluster's", false, false}} {
		t.Run(fmt.Sprintf("%s, restored %t", c.name, c.restore), func(t *testing.T) {
			name, edit, restore := c.name, c.edit, c.restore
			w := newWorld(t)
			a, b := w.start("a"), w.node("b")
			a.write("f", "the cluster's")
			w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
			if edit {
				b.write("f", name)
			} else {
				b.open()
				w.awaitEqual()
				b.close()
				a.write("f", "the cluster's newer one")
				w.await("the second revision", func() bool { return a.store.Status().Base > 1 })
			}
			b.cutOff(1, nil)
			dir := b.dirs[fileBase]
			if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m,mode=755"); err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			b.write("g", "of the new disk")
			b.open()
			w.await("it is seen", func() bool { return b.store.Status().Slots[0].Lacking })
			must(t, b.store.Refill(t.Context(), dir))
			w.awaitEqual()
			found := false
			for _, c := range b.store.Conflicts(1000) {
				text, err := os.ReadFile(c.Kept)
				here := c.Path == "f" && err == nil && string(text) == name
				found = found || here
				if here && restore {
					b.restore(c.ID)
					w.await("a has it", func() bool { return a.has("f", name) })
				} else {
					must(t, b.store.Drop(t.Context(), c.ID))
				}
				if _, err := os.Lstat(c.Kept); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is decided on, and still there: %v", c.Kept, err)
				}
			}
			check.Equal(t, found, edit, "put aside")
		})
	}
}

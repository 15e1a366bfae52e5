package roots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// cutOff opens a node whose next switch is cut off after so many steps, does something then, and ends it.
func (n *testNode) cutOff(steps int64, then func()) {
	n.w.t.Helper()
	store, err := New(n.cfg)
	must(n.w.t, err)
	var done, cut atomic.Int64
	store.hooks.step = func() error {
		if done.Add(1) <= steps {
			return nil
		}
		if cut.Swap(1) == 0 && then != nil {
			then()
		}
		return errors.New("cut off")
	}
	n.openStore(store)
	n.w.await("the switch is cut off", func() bool { return cut.Load() == 1 })
	_ = n.crash()
}

// rested waits until a node has done a round, and what comes after it when nobody waits.
func (n *testNode) rested() {
	n.w.t.Helper()
	for range 2 {
		must(n.w.t, n.store.inLoop(n.w.t.Context(), func(context.Context) error { return nil }))
	}
}

func writeOut(t *testing.T) {
	t.Helper()
	must(t, exec.CommandContext(t.Context(), "sync").Run())
}

// sameAs wants the revisions and files that there were: nothing that a power failure has left is anybody's edit.
func (w *world) sameAs(revisions, files int) {
	w.t.Helper()
	head, _ := nodeLog{w.nodes["a"]}.Head()
	if n := w.count(); n != revisions || head.Author != "a" {
		w.t.Errorf("%d revisions, there were %d: %+v", n, revisions, head)
	}
	if n := len(w.nodes["a"].disk()); n != files {
		w.t.Errorf("%d files, there were %d", n, files)
	}
}

// goesOn starts a node again on a disk from which the power was taken, and wants the revisions and files that there
// were.
func (n *testNode) goesOn(disk *powered) {
	n.w.t.Helper()
	disk.back()
	revisions, files := n.w.count(), len(n.w.nodes["a"].disk())
	n.open()
	n.w.awaitEqual()
	n.w.sameAs(revisions, files)
}

// TestPowerFails_AfterSmallSwitch: its files are on the disk before it, their names are brought there after it.
func TestPowerFails_AfterSmallSwitch(t *testing.T) {
	for _, state := range []bool{true, false} {
		for _, files := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d files, with state %v", files, state), func(t *testing.T) {
				w := newWorld(t)
				a, b := w.start("a"), w.node("b")
				dir := b.dirs[fileBase]
				if state {
					dir = filepath.Dir(b.state)
				}
				disk := newPowered(t, dir)
				must(t, os.MkdirAll(b.dirs[fileBase], 0o755))
				b.open()
				for n := range 5 { // then the database has the size it needs
					for i := range files {
						a.write(fmt.Sprint("f", i), fmt.Sprint("old", n))
					}
					a.write("stays", fmt.Sprint(n))
					w.awaitEqual()
				}
				writeOut(t)
				for i := range files {
					a.write(fmt.Sprint("f", i), "new")
				}
				w.await("b has it", func() bool { return b.has(fmt.Sprint("f", files-1), "new") })
				w.awaitEqual()
				b.rested()
				must(t, disk.fail())
				_ = b.crash()
				b.goesOn(disk)
			})
		}
	}
}

// TestTwoSwitchesInOneRound: one that was cut off is ended before the next one begins, or its plan would be forgotten
// before it is on the disk.
func TestTwoSwitchesInOneRound(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.node("b")
	disk := newPowered(t, b.dirs[fileBase])
	for i := range 40 {
		a.write(fmt.Sprint("f", i), noise(byte(i), 20000))
	}
	w.await("a has proposed it", func() bool { return a.store.Status().Stable(40) })
	b.write("f0", "b's own")
	b.cutOff(20, nil)
	a.write("later", "edited meanwhile")
	w.await("a has proposed that", func() bool { return a.store.Status().Stable(41) })
	b.open()
	w.awaitEqual()
	b.rested()
	if n := len(b.store.Conflicts(1000)); n != 1 {
		t.Errorf("%d were put aside, b had one of its own", n)
	}
	must(t, disk.fail())
	_ = b.crash()
	b.goesOn(disk)
	if n := len(b.store.Conflicts(1000)); n != 1 {
		t.Errorf("%d that were put aside are remembered", n)
	}
}

// TestPowerFails_DirectoryBecomesFile: the power fails before the first step.
func TestPowerFails_DirectoryBecomesFile(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.node("b")
	disk := newPowered(t, b.dirs[fileBase])
	b.open()
	a.write("d/x", "x")
	w.awaitEqual()
	b.close()
	writeOut(t)
	a.close()
	a.remove("d")
	for i := range 40 {
		a.write(fmt.Sprint("f", i), noise(byte(i), 20000))
	}
	a.write("d", "a file now")
	a.open()
	w.await("a has proposed it", func() bool { return a.store.Status().Stable(41) })
	b.cutOff(0, func() { must(t, disk.fail()) })
	b.goesOn(disk)
}

// TestPowerFails_MountedLater: the power fails in a switch, and the file system is mounted a while after the next
// start. Until then its mount point is left alone, and then the switch is resumed.
func TestPowerFails_MountedLater(t *testing.T) {
	for _, edited := range []bool{false, true} {
		t.Run(fmt.Sprint("had files ", edited), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.node("b")
			disk := newPowered(t, b.dirs[fileBase])
			if edited {
				for i := range 40 {
					a.write(fmt.Sprint("goes", i), noise(byte(i), 2000))
				}
				for i := range 100 {
					a.write(fmt.Sprint("stays", i), noise(byte(i), 200))
				}
				b.open()
				w.awaitEqual()
				b.close()
				writeOut(t)
				for i := range 40 {
					a.remove(fmt.Sprint("goes", i))
				}
			}
			for i := range 40 {
				a.write(fmt.Sprint("f", i), noise(byte(100+i), 2000))
			}
			_, err := a.store.Sync(t.Context(), SyncOptions{Force: true})
			must(t, err)
			w.await("a has proposed it", func() bool { st := a.store.Status(); return st.Head == st.Base && !st.Edited })
			b.cutOff(5, func() { must(t, disk.fail()) })
			disk.unmount()
			revisions, files := w.count(), len(a.disk())
			b.open()
			w.await("b sees that it is not mounted", func() bool { return b.store.Status().Slots[0].Replaced })
			b.rested()
			if n := len(b.disk()); n > 0 {
				t.Errorf("the mount point was filled: %d files", n)
			}
			b.close() // what it has to go on with outlasts this, too
			b.open()
			w.await("b sees that it is not mounted", func() bool { return b.store.Status().Slots[0].Replaced })
			disk.mount()
			w.awaitEqual()
			w.sameAs(revisions, files)
			b.close()
		})
	}
}

// TestNotCaughtUpWithoutFiles: a node that has lost files of the head does not say that it has it.
func TestNotCaughtUpWithoutFiles(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.node("b")
	for i := range 40 {
		a.write(fmt.Sprint("d/f", i), noise(byte(i), 20000))
	}
	a.write("stays", "1")
	w.await("a has proposed it", func() bool { return a.store.Status().Stable(41) })
	disk := newPowered(t, b.dirs[fileBase])
	b.write("stays", "1")
	writeOut(t)
	b.cutOff(30, func() { must(t, disk.fail()) })
	disk.back()
	a.close() // nobody has what was lost
	b.open()
	w.await("b has tried to fetch it", func() bool { return len(b.store.Status().Problems) > 0 })
	if st := b.store.Status(); st.CaughtUp || st.Base >= st.Head {
		t.Errorf("%+v", st)
	}
	a.open()
	w.awaitEqual()
	if st := b.store.Status(); !st.CaughtUp || st.Base != st.Head {
		t.Errorf("%+v", st)
	}
}

// TestPowerFails_MountInsideRoot: what is mounted inside of a slot is brought to its own disk.
func TestPowerFails_MountInsideRoot(t *testing.T) {
	for _, what := range []string{"made", "edited"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.node("b")
			must(t, os.Mkdir(b.path("sub"), 0o755))
			disk := newPowered(t, b.path("sub"))
			must(t, os.Remove(b.path("sub/lost+found")))
			b.open()
			for i := range 100 {
				a.write(fmt.Sprint("sub/edited", i), noise(byte(i), 200))
			}
			w.awaitEqual()
			writeOut(t)
			a.close()
			before := w.count() // a busy machine may have seen the first files in several revisions
			for i := range 40 {
				a.write(fmt.Sprint("sub/", what, i), noise(byte(100+i), 2000))
			}
			a.open()
			w.await("another revision", func() bool { return w.count() > before })
			w.awaitEqual()
			b.rested()
			must(t, disk.fail())
			_ = b.crash()
			b.goesOn(disk)
			b.close()
		})
	}
}

// TestPowerFails_OnlyNode: the power fails when a revision has just been decided. Other nodes do not have what its disk
// has lost, so what is there counts.
func TestPowerFails_OnlyNode(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	disk := newPowered(t, filepath.Dir(a.state))
	must(t, os.Mkdir(a.dirs[fileBase], 0o755))
	a.open()
	a.write("stays", "1")
	w.awaitEqual()
	a.close()
	a.open()
	w.awaitEqual()
	writeOut(t)
	var failed atomic.Int64
	w.mu.Lock()
	w.decided = func(*testNode) error {
		if failed.Swap(1) == 0 {
			must(t, disk.fail())
		}
		return nil
	}
	w.mu.Unlock()
	for i := range 40 {
		a.write(fmt.Sprint("f", i), noise(byte(i), 20000))
	}
	w.await("it is decided", func() bool { return failed.Load() == 1 })
	_ = a.crash()
	w.mu.Lock()
	w.decided = nil
	w.mu.Unlock()
	disk.back()
	store, err := New(a.cfg)
	must(t, err)
	store.boot = "the next one"
	a.openStore(store)
	w.awaitEqual()
	a.write("later", "1")
	w.await("an edit is taken again", func() bool {
		st := a.store.Status()
		return st.CaughtUp && !st.Edited && st.Base == uint64(w.count()) && a.has("later", "1")
	})
}

// TestPowerFails_SameEdits: what was there already is brought to the disk with what a switch has brought.
func TestPowerFails_SameEdits(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.node("b")
	disk := newPowered(t, b.dirs[fileBase])
	b.open()
	for i := range 4 {
		a.write(fmt.Sprint("d", i, "/f"), "old")
	}
	w.awaitEqual()
	b.close()
	writeOut(t)
	for i := range 4 {
		a.write(fmt.Sprint("d", i, "/made"), "new")
		if i%2 == 0 {
			b.write(fmt.Sprint("d", i, "/made"), "new")
		}
	}
	w.await("a has proposed it", func() bool { st := a.store.Status(); return !st.Edited && st.CaughtUp && st.Head > 1 })
	b.open()
	w.awaitEqual()
	b.rested()
	must(t, disk.fail())
	_ = b.crash()
	b.goesOn(disk)
	if !a.has("d0/made", "new") {
		t.Error("an edit was undone")
	}
}

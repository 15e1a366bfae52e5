package roots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/check"
)

// inConflict returns two nodes; b has put aside a file f that it had before it joined.
func (w *world) inConflict(agreed, aside string) (a, b *testNode, c Conflict) {
	w.t.Helper()
	a = w.start("a")
	a.write("f", agreed)
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	b = w.node("b")
	b.write("f", aside)
	b.open()
	w.await("b has caught up", func() bool { return b.store.CaughtUp() && len(b.store.Conflicts(1000)) == 1 })
	return a, b, b.store.Conflicts(1000)[0]
}

// restore waits until what was put aside is restored; a file may be too young for its times to tell an edit.
func (n *testNode) restore(id string) {
	n.w.t.Helper()
	n.w.await("it is restored", func() bool {
		err := n.store.Resolve(n.w.t.Context(), id)
		if err != nil && !errors.Is(err, ErrEdited) {
			n.w.t.Fatal(err)
		}
		return err == nil
	})
}

// stepping has step called before each change of a switch from now on.
func (n *testNode) stepping(step func() error) {
	n.w.t.Helper()
	must(n.w.t, n.store.inLoop(n.w.t.Context(), func(context.Context) error { n.store.hooks.step = step; return nil }))
}

// TestResolve_Edited: what was put aside does not replace an edit that the cluster does not have.
func TestResolve_Edited(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.inConflict("the cluster's", "the joiner's")

	b.mode(ModeManual)
	b.write("f", "edited")
	check.ErrorIs(t, b.store.Resolve(t.Context(), c.ID), ErrEdited, "over an edit that is not proposed")
	if content, err := os.ReadFile(c.Kept); !b.has("f", "edited") || err != nil || string(content) != "the joiner's" {
		t.Errorf("after it was refused: aside is %q, %v", content, err)
	}

	before := a.store.Status().Base
	b.mode(ModeAuto)
	b.restore(c.ID)
	w.await("a has it", func() bool { return a.has("f", "the joiner's") })
	w.awaitEqual()
	check.Equal(t, a.store.Status().Base-before, 2, "revisions")
	b.hasNoConflict(c)
}

func (n *testNode) hasNoConflict(c Conflict) {
	n.w.t.Helper()
	if left := n.store.Conflicts(1000); len(left) != 0 {
		n.w.t.Errorf("conflicts left: %v", left)
	}
	if _, err := os.Lstat(c.Kept); !os.IsNotExist(err) {
		n.w.t.Errorf("something is left aside: %v", err)
	}
}

// TestResolve_EditDuringExchange: an edit in the instant before the exchange is given back.
func TestResolve_EditDuringExchange(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.inConflict("the cluster's", "the joiner's")
	edits := 0
	b.stepping(func() error {
		if edits++; edits == 1 {
			b.write("f", "edited")
		}
		return nil
	})
	w.await("the edit is found", func() bool {
		err := b.store.Resolve(t.Context(), c.ID)
		if !errors.Is(err, ErrEdited) {
			t.Fatalf("an edit was replaced: %v", err)
		}
		return edits > 0
	})
	w.await("a has the edit", func() bool { return a.has("f", "edited") })
	w.awaitEqual()
	if content, err := os.ReadFile(c.Kept); err != nil || string(content) != "the joiner's" {
		t.Errorf("aside is %q, %v", content, err)
	}
	b.restore(c.ID)
	w.await("a has it", func() bool { return a.has("f", "the joiner's") })
	b.hasNoConflict(c)
}

func TestResolve_DirectoryInPlace(t *testing.T) {
	w := newWorld(t)
	_, b, c := w.inConflict("the cluster's", "the joiner's")
	b.remove("f")
	b.write("f/g", "1")
	err := b.store.Resolve(t.Context(), c.ID)
	if err == nil || !strings.Contains(err.Error(), "a directory is there now") {
		t.Errorf("over a directory: %v", err)
	}
	b.remove("f")
	b.restore(c.ID)
	w.await("it is back", func() bool { return b.has("f", "the joiner's") })
	b.hasNoConflict(c)
}

// TestResolve_KeepsReplaced: what a restored file replaces may be the only copy of what was agreed on.
func TestResolve_KeepsReplaced(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.inConflict("the cluster's", "the joiner's")
	a.close()
	large := noise(1, maxRecentFile+100<<10)
	b.write("f", large)
	w.await("it is agreed on", func() bool { st := b.store.Status(); return st.Base == 2 && !st.Edited })
	b.restore(c.ID)
	b.hasNoConflict(c)
	if _, err := b.store.Rollback(t.Context(), 2); err != nil || !b.has("f", large) {
		t.Errorf("back to what was replaced: %v", err)
	}
}

// TestResolve_CutOff: after a crash at any step a restored file stays restored, and what it replaced is kept.
func TestResolve_CutOff(t *testing.T) {
	for limit := 1; limit <= 2; limit++ {
		t.Run(fmt.Sprint("step ", limit), func(t *testing.T) {
			w := newWorld(t)
			a, b, c := w.inConflict(noise(1, maxRecentFile+1), "the joiner's")
			steps := 0
			b.stepping(func() error {
				if steps++; steps >= limit {
					return errors.New("cut off")
				}
				return nil
			})
			w.await("it is cut off", func() bool {
				return !errors.Is(b.store.Resolve(t.Context(), c.ID), ErrEdited)
			})
			_ = b.crash()
			a.close()
			b.open()
			w.await("b has looked", func() bool { return b.store.CaughtUp() })
			if limit == 1 { // nothing had happened
				b.restore(c.ID)
			} else if err := b.store.Resolve(t.Context(), c.ID); !errors.Is(err, ErrNoConflict) {
				t.Errorf("once more: %v", err)
			}
			w.await("it is proposed", func() bool { return w.count() == 2 })
			if !b.has("f", "the joiner's") {
				t.Error("it is not restored")
			}
			b.hasNoConflict(c)
			if _, err := b.store.Rollback(t.Context(), 1); err != nil {
				t.Errorf("back to what was replaced: %v", err)
			}
		})
	}
}

// TestConflict_PlaceChanged: what was put aside is found when the state directory, or the master's configuration, is
// another since, and once when two paths lead to it.
func TestConflict_PlaceChanged(t *testing.T) {
	for _, linked := range []bool{false, true} {
		t.Run(fmt.Sprint("linked ", linked), func(t *testing.T) {
			w := newWorld(t)
			_, b, c := w.inConflict("the cluster's", "the joiner's")
			b.close()
			moved := b.state + ".moved"
			must(t, os.Rename(b.state, moved))
			if linked {
				must(t, os.Symlink(moved, b.state))
			}
			b.cfg.StateDir = moved
			slots := b.cfg.Slots
			b.cfg.Slots = []Slot{{SlotName{Kind: "file", Env: "other"}, t.TempDir()}}
			b.open()
			kept := b.store.Conflicts(1000)[0].Kept
			if text, err := os.ReadFile(kept); err != nil || string(text) != "the joiner's" {
				t.Fatalf("listed as %s: %q, %v", kept, text, err)
			}
			if err := b.store.Resolve(t.Context(), c.ID); err == nil || !strings.Contains(err.Error(), kept) {
				t.Errorf("restored to a directory that is not configured: %v", err)
			}
			b.close()
			b.cfg.Slots = slots
			b.open()
			b.restore(c.ID)
			if !b.has("f", "the joiner's") {
				t.Errorf("b has %v", b.disk())
			}
			b.hasNoConflict(Conflict{Kept: kept})
		})
	}
}

// TestDrop_NotConfigured: what was put aside of a directory that is not in the configuration any more can be removed.
func TestDrop_NotConfigured(t *testing.T) {
	w := newWorld(t)
	_, b, c := w.inConflict("the cluster's", "the joiner's")
	b.close()
	b.cfg.Slots = []Slot{{SlotName{Kind: "file", Env: "other"}, t.TempDir()}}
	b.open()
	must(t, b.store.Drop(t.Context(), c.ID))
	b.hasNoConflict(c)
}

// TestDrop_NotMounted: what cannot be seen because its disk is not mounted is not forgotten.
func TestDrop_NotMounted(t *testing.T) {
	w := newWorld(t)
	_, b, c := w.inConflict("the cluster's", "the joiner's")
	for _, r := range [][2]string{{b.dirs[fileBase], b.dirs[fileBase] + ".away"}, {c.Kept, c.Kept + ".away"}} {
		must(t, os.Rename(r[0], r[1]))
	}
	_, _ = b.store.Sync(t.Context(), SyncOptions{}) // which looks
	if err := b.store.Drop(t.Context(), c.ID); err == nil || len(b.store.Conflicts(1000)) != 1 {
		t.Errorf("dropped: %v", err)
	}
	must(t, os.Rename(b.dirs[fileBase]+".away", b.dirs[fileBase]))
	must(t, os.Rename(c.Kept+".away", c.Kept))
	_, _ = b.store.Sync(t.Context(), SyncOptions{})
	must(t, b.store.Drop(t.Context(), c.ID))
	b.hasNoConflict(c)
}

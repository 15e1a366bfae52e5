package roots

import (
	"errors"
	"os"
	"testing"
)

// TestResolve_Edited: what was put aside does not replace an edit that the cluster does not have.
func TestResolve_Edited(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("f", "the cluster's")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	b := w.node("b")
	b.write("f", "the joiner's")
	b.open()
	w.await("b has caught up", func() bool { return b.store.CaughtUp() && len(b.store.Conflicts()) == 1 })
	c := b.store.Conflicts()[0]

	b.mode(ModeManual)
	b.write("f", "edited")
	if err := b.store.Resolve(t.Context(), c.ID); !errors.Is(err, errEdited) {
		t.Errorf("over an edit that is not proposed: %v", err)
	}
	if content, err := os.ReadFile(c.Kept); !b.has("f", "edited") || err != nil || string(content) != "the joiner's" {
		t.Errorf("after it was refused: aside is %q, %v", content, err)
	}

	b.mode(ModeAuto)
	before := a.store.Status().Base
	w.await("it is restored", func() bool {
		err := b.store.Resolve(t.Context(), c.ID)
		if err != nil && !errors.Is(err, errEdited) { // the file is too young for its times to tell
			t.Fatal(err)
		}
		return err == nil
	})
	w.await("a has it", func() bool { return a.has("f", "the joiner's") })
	w.awaitEqual()
	if n := a.store.Status().Base - before; n != 2 {
		t.Errorf("%d revisions, not the edit and what replaced it", n)
	}
	if left := b.store.Conflicts(); len(left) != 0 {
		t.Errorf("conflicts left: %v", left)
	}
	if _, err := os.Lstat(c.Kept); !os.IsNotExist(err) {
		t.Errorf("something is left aside: %v", err)
	}
}

package roots

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A slot that is another directory elsewhere is neither read nor written, and caught up with once that is over.
func TestSlots_DifferentOrder(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("f", "1")
	w.await("the first revision", func() bool { return a.store.Status().Stable(1) })
	b := w.node("b")
	b.write("mine", "2")
	var crossed atomic.Bool
	crossed.Store(true)
	b.cfg.Timing.Poll = 10 * time.Millisecond
	b.cfg.Order = func(context.Context) map[SlotName]string {
		if crossed.Load() {
			return map[SlotName]string{fileBase: "another order"}
		}
		return nil
	}
	b.open()
	left := func() bool {
		st := b.store.Status()
		return st.CaughtUp && strings.Contains(st.Slots[0].Unavailable, "another order") && len(st.Problems) > 0
	}
	w.await("b leaves it alone", left)
	a.write("f", "3")
	w.await("the second revision", func() bool { return a.store.Status().Base == 2 && b.store.Status().Base == 2 })
	if !left() || !b.lacks("f") || !b.has("mine", "2") || w.count() != 2 {
		t.Fatalf("%+v", b.store.Status())
	}
	crossed.Store(false)
	w.await("b has it", func() bool { return b.has("f", "3") })
	w.awaitEqual()
	crossed.Store(true)
	a.write("f", "4")
	w.await("b leaves it alone again", func() bool { return left() && b.store.Status().Base == a.store.Status().Head })
	if !b.has("f", "3") {
		t.Error("it was written to")
	}
}

// An operator is not told that all is well by a node that does not know the cluster's revision.
func TestSyncNeedsTheLog(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.unready.Store(true)
	a.cfg.Mode, a.cfg.Timing.Ready = ModeManual, time.Millisecond
	a.write("f", "1")
	a.open()
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("%v", err)
	}
	a.close()
	a.cfg.Timing.Ready = testTimeout
	a.open()
	done := make(chan error)
	go func() { _, err := a.store.Sync(t.Context(), SyncOptions{}); done <- err }()
	a.unready.Store(false)
	if err := <-done; err != nil || w.count() != 1 {
		t.Errorf("%v, %d revisions", err, w.count())
	}
}

package roots

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/integration/require"
)

// vagueLog decides nothing while it is vague: nobody will ever have heard of what was proposed.
type vagueLog struct {
	nodeLog
	vague *atomic.Bool
	tries *atomic.Int64
	err   error
}

func (l vagueLog) Propose(ctx context.Context, p Proposal) (Revision, error) {
	if l.vague.Load() {
		l.tries.Add(1)
		return Revision{}, l.err
	}
	return l.nodeLog.Propose(ctx, p)
}

// mode changes how a node's edits are proposed.
func (n *testNode) mode(m Mode) {
	n.w.t.Helper()
	require.NoError(n.w.t, n.store.inLoop(context.Background(),
		func(context.Context) error { n.store.cfg.Mode = m; return nil }))
}

// scan has a node look at its disk.
func (n *testNode) scan() {
	n.w.t.Helper()
	if _, err := n.store.Sync(context.Background(), SyncOptions{DryRun: true}); err != nil {
		n.w.t.Fatal(err)
	}
}

// What was proposed and never was in force, and was undone, is not there for ever: when another node makes the same
// change, that is its edit.
func TestProposal_FailedAndUndone(t *testing.T) {
	for _, c := range []struct {
		name            string
		err             error
		restart, remove bool
	}{
		{"an edit", ErrUncertain, false, false},
		{"a deletion", ErrUncertain, false, true},
		{"an edit, refused before a restart", ErrNoQuorum, true, false},
		{"a deletion, refused before a restart", ErrNoQuorum, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var vague atomic.Bool
			var tries atomic.Int64
			a := w.node("a")
			a.cfg.Log = vagueLog{nodeLog{a}, &vague, &tries, c.err}
			a.open()
			b := w.start("b")
			a.write("f", "1")
			a.write("k", "1")
			w.await("both have it", func() bool { return b.has("f", "1") && b.has("k", "1") })
			w.awaitEqual()
			change := func(n *testNode) {
				if c.remove {
					n.remove("f")
				} else {
					n.write("f", "2")
				}
			}
			vague.Store(true)
			change(a)
			w.await("a proposal", func() bool { return tries.Load() > 0 })
			a.write("f", "1")
			w.await("it is undone", func() bool { s := a.store.Status(); return !s.Edited && s.Progress.Phase == PhaseIdle })
			a.scan()
			vague.Store(false)
			if c.restart {
				a.close()
				a.open()
				w.awaitEqual()
			}
			a.mode(ModeManual)
			a.write("k", "mine")
			a.scan()
			n := w.count()
			change(b)
			w.await("b's revision", func() bool { return w.count() > n })
			a.mode(ModeAuto)
			w.await("a's edit", func() bool { return b.has("k", "mine") })
			w.awaitEqual()
			if c.remove && b.has("f", "1") || !c.remove && !b.has("f", "2") {
				t.Error("b's edit is undone")
			}
		})
	}
}

// inDev is a second slot of two nodes.
func inDev(t *testing.T) (w *world, a, b *testNode, put func(n *testNode, p, content string), has func(n *testNode, p string) bool) {
	dev := SlotName{Kind: "file", Env: "dev"}
	w = newWorld(t, fileBase, dev)
	a, b = w.node("a"), w.start("b")
	put = func(n *testNode, p, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(n.dirs[dev], p), []byte(content), 0o644))
	}
	has = func(n *testNode, p string) bool {
		_, err := os.Stat(filepath.Join(n.dirs[dev], p))
		return err == nil
	}
	b.write("f", "1")
	put(b, "g", "1")
	put(b, "h", "1")
	w.await("revisions of it", func() bool {
		return w.count() > 0 && !b.store.Status().Edited && len(b.disk()) >= 3 && b.store.Status().Base == uint64(w.count())
	})
	b.scan()
	w.awaitEqual()
	return w, a, b, put, has
}

// A slot that a node has since its proposal is no part of that: nothing in it was deleted by it.
func TestProposal_FailedBeforeSlotAdded(t *testing.T) {
	w, a, b, put, has := inDev(t)
	var vague atomic.Bool
	var tries atomic.Int64
	slots := a.cfg.Slots
	a.cfg.Slots = slots[:1]
	a.cfg.Log = vagueLog{nodeLog{a}, &vague, &tries, ErrUncertain}
	a.open()
	w.await("a has its slot", func() bool { return a.has("f", "1") && a.store.CaughtUp() })
	vague.Store(true)
	a.write("f", "2")
	w.await("a proposal", func() bool { return tries.Load() > 0 })
	a.close()
	a.cfg.Slots = slots
	a.write("f", "3")
	a.open()
	w.await("a has the other slot", func() bool { return has(a, "g") })
	put(a, "h", "2")
	a.scanned(t)
	n := w.count()
	require.NoError(t, os.Remove(filepath.Join(b.dirs[slots[1].Name], "g")))
	w.await("b's revision", func() bool { return w.count() > n })
	vague.Store(false)
	w.awaitEqual()
	if has(b, "g") || has(a, "g") {
		t.Error("what b has removed is back")
	}
}

// scanned has a node look at its disk when it cannot propose.
func (n *testNode) scanned(t *testing.T) {
	t.Helper()
	err := n.store.inLoop(t.Context(), func(ctx context.Context) error {
		n.store.dirty = true
		return n.store.scanAll(ctx)
	})
	require.NoError(t, err)
}

// What a node knows of slots that came after its proposal stays when that turns out to be in force.
func TestProposal_CommittedBeforeSlotAdded(t *testing.T) {
	w, a, _, put, has := inDev(t)
	slots := a.cfg.Slots
	a.cfg.Slots = slots[:1]
	a.open()
	w.await("a has its slot", func() bool { return a.has("f", "1") && a.store.CaughtUp() })
	n := w.count()
	w.mu.Lock()
	a.newest = uint64(n)
	w.decided = func(x *testNode) error {
		if x == a {
			return ErrUncertain
		}
		return nil
	}
	w.mu.Unlock()
	a.write("f", "2")
	w.await("it is in force", func() bool { return w.count() > n })
	a.close()
	a.cfg.Slots = slots
	a.open()
	w.await("a has the other slot", func() bool {
		if !has(a, "g") {
			return false
		}
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		_, ok := a.store.base.Slots[slots[1].Name]
		return ok
	})
	put(a, "h", "2")
	require.NoError(t, os.Remove(filepath.Join(a.dirs[slots[1].Name], "g")))
	a.scanned(t)
	w.mu.Lock()
	a.newest, w.decided = 0, nil
	w.signal()
	w.mu.Unlock()
	w.awaitEqual()
	raw, err := os.ReadFile(filepath.Join(a.dirs[slots[1].Name], "h"))
	if has(a, "g") || err != nil || string(raw) != "2" || len(a.store.Conflicts(1000)) > 0 {
		t.Errorf("a's edits of the other slot are lost: %q, %v, %+v", raw, err, a.store.Conflicts(1000))
	}
}

// Who edits on while his revision waits for an operator has no conflict with it when it is confirmed; what he has put
// back goes, though.
func TestEditedWhileItWaits(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.start("b")
	for i := range 40 {
		b.write(fmt.Sprint("d/f", i), "1")
		b.write(fmt.Sprint("x/f", i), "1")
	}
	b.write("e", "1")
	w.await("b", func() bool { return !b.store.Status().Edited && w.count() > 0 })
	a.cfg.Mode = ModeManual
	a.open()
	w.awaitEqual()
	a.remove("d")
	a.write("e", "2")
	res, err := a.store.Sync(t.Context(), SyncOptions{})
	if err != nil || !res.Held {
		t.Fatalf("%+v, %v", res, err)
	}
	a.write("e", "3")
	a.write("d/f7", "1")
	a.scan()
	w.decide(res.Revision.Number, StateApplied)
	w.await("it is in force", func() bool { return a.store.Status().Base == res.Revision.Number })
	if !a.has("e", "3") || len(a.store.Conflicts(1000)) > 0 || a.has("d/f7", "1") {
		t.Errorf("put back: %v; %+v", a.has("d/f7", "1"), a.store.Conflicts(1000))
	}
}

package roots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/integration/require"
)

// Whoever is killed when what he has edited has become a revision, and has not been fetched by anybody, edits on:
// nobody waits for the former content, which is nowhere any more, and he has no conflict with himself.
func TestKilledWithAProposal(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", "1")
	a.write("d/g", "1")
	w.await("both have it", func() bool { return a.store.Status().Stable(2) && b.store.Status().Stable(2) })
	b.close()
	db := filepath.Join(a.state, "roots.db")
	var raw []byte
	w.mu.Lock()
	w.decided = func(*testNode) (err error) {
		if raw == nil { // what is on the disk now is what a kill leaves
			raw, err = os.ReadFile(db)
		}
		return errors.Join(err, errors.New("killed"))
	}
	w.mu.Unlock()
	a.write("d/g", "2")
	w.await("the revision", func() bool { return w.count() == 2 })
	w.mu.Lock()
	w.decided = nil
	w.mu.Unlock()
	a.close()
	if raw == nil {
		t.Fatal("nothing was decided")
	}
	require.NoError(t, os.WriteFile(db, raw, 0o600))
	a.write("d/g", "3")
	a.write("h", "1")
	b.open()
	a.open()
	w.await("b has all of it", func() bool { return b.has("d/g", "3") && b.has("h", "1") })
	w.awaitEqual()
	if n := len(a.store.Conflicts(1000)) + len(b.store.Conflicts(1000)); n > 0 {
		t.Errorf("%d conflicts, a: %+v", n, a.store.Conflicts(1000))
	}
}

// The answer to a proposal may be lost though it has become a revision.
func TestProposal_AnswerLost(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", "1")
	w.await("both have it", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
	w.mu.Lock()
	w.decided = func(n *testNode) error {
		n.write("f", "3") // before it is known that 2 is in force
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decided = nil
		return ErrUncertain
	}
	w.mu.Unlock()
	a.write("f", "2")
	w.await("b has the last", func() bool { return b.has("f", "3") })
	w.awaitEqual()
	if n := len(a.store.Conflicts(1000)); n > 0 || !a.has("f", "3") {
		t.Errorf("%d conflicts", n)
	}
}

// So may what became of it, while edits and proposals go on, which are refused: none of it is a conflict with itself,
// and what was removed is not back. The log names the last revisions only.
func TestProposal_AnswerLate(t *testing.T) {
	for name, forgetful := range map[string]bool{"the log names it": false, "the log has forgotten it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.start("b")
			a.write("f", "1")
			w.await("both have it", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
			var refused atomic.Int64
			w.mu.Lock()
			a.newest = 1
			w.decided = func(n *testNode) error {
				if n == a {
					return ErrUncertain
				}
				return nil
			}
			w.refused = func(n *testNode) {
				if n == a {
					refused.Add(1)
				}
			}
			w.mu.Unlock()
			next := filepath.Join(t.TempDir(), "d")
			if err := errors.Join(os.Mkdir(next, 0o755), os.WriteFile(filepath.Join(next, "g"), []byte("2"), 0o644),
				os.WriteFile(filepath.Join(next, "late"), []byte("2"), 0o644), os.Rename(next,
					filepath.Join(a.dirs[fileBase], "d"))); err != nil {
				t.Fatal(err)
			}
			w.await("b has it", func() bool { return b.has("d/late", "2") && b.has("d/g", "2") })
			a.write("d/g", "3")
			a.remove("d/late")
			before := refused.Load()
			w.await("two more proposals", func() bool { return refused.Load() > before+1 })
			b.write("f", "2")
			w.await("b's edit", func() bool { return w.count() == 3 })
			w.mu.Lock()
			a.newest, a.forgetful = 0, forgetful
			w.decided, w.refused = nil, nil
			w.signal()
			w.mu.Unlock()
			w.await("all edits", func() bool { return a.has("f", "2") && b.has("d/g", "3") && !b.has("d/late", "2") })
			w.awaitEqual()
			if n := len(a.store.Conflicts(1000)) + len(b.store.Conflicts(1000)); n > 0 || !a.has("d/g", "3") || a.has("d/late", "2") {
				t.Errorf("%d conflicts: %+v", n, a.store.Conflicts(1000))
			}
		})
	}
}

// TestProposal_LostOfDisk has a machine stop when a revision of its own is decided, after which files of it are empty:
// what no other node has is not held, also when it restarts before that is decided; what others had before is.
func TestProposal_LostOfDisk(t *testing.T) {
	for _, tc := range []struct {
		name    string
		edited  int // files that others have in an earlier revision
		restart bool
		held    bool
	}{{"made", 0, false, false}, {"made, and a restart", 0, true, false}, {"edited", 40, false, true},
		{"edited, and a restart", 40, true, true}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.start("b")
			a.write("stays", "1")
			for i := range tc.edited {
				a.write(fmt.Sprint("f", i), "old")
			}
			w.await("both have it", func() bool {
				return a.store.Status().Stable(1+tc.edited) && b.store.Status().Stable(1+tc.edited)
			})
			b.close()
			a.close()
			for i := range 40 {
				a.write(fmt.Sprint("f", i), "new")
			}
			before, db := w.count(), filepath.Join(a.state, "roots.db")
			var raw []byte
			w.mu.Lock()
			w.decided = func(*testNode) (err error) {
				if raw == nil {
					raw, err = os.ReadFile(db)
				}
				return errors.Join(err, ErrUncertain)
			}
			w.mu.Unlock()
			a.open()
			w.await("the revision", func() bool { return w.count() == before+1 })
			_ = a.crash()
			for i := range 40 {
				a.write(fmt.Sprint("f", i), "")
			}
			must(t, os.WriteFile(db, raw, 0o600))
			next := func() {
				store, err := New(a.cfg)
				must(t, err)
				store.boot = "the next one"
				a.openStore(store)
			}
			w.mu.Lock()
			w.decided = nil
			a.cut = tc.restart
			w.mu.Unlock()
			next()
			if tc.restart {
				w.await("it is adopted", func() bool { return a.store.Status().Base == uint64(before+1) })
				a.close()
				w.mu.Lock()
				a.cut = false
				w.mu.Unlock()
				next()
			}
			w.await("another revision", func() bool { return w.count() > before+1 })
			if held := len(a.store.Status().Held) > 0; held != tc.held {
				t.Errorf("held %v, want %v", held, tc.held)
			}
		})
	}
}

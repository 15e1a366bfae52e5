package roots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// An operator saves a file in the very instant in which a switch of this one file replaces it, and the process is
// killed there.
func TestSwitch_EditDuringExchange(t *testing.T) {
	for _, again := range []bool{false, true} {
		for limit := int64(1); limit <= 3; limit++ {
			t.Run(fmt.Sprintf("killed at step %d, edited again %t", limit, again),
				func(t *testing.T) { testInstant(t, limit, again) })
		}
	}
}

func testInstant(t *testing.T, limit int64, again bool) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", "old")
	w.await("b has it", func() bool { return b.store.Status().Stable(1) })
	w.awaitEqual()
	b.close()
	a.write("f", "new")
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	store, err := New(b.cfg)
	must(t, err)
	var steps, killed atomic.Int64
	store.hooks.step = func() error {
		n := steps.Add(1)
		if n == 1 {
			b.write("f", "edited")
		}
		if n >= limit {
			killed.Store(1)
			return errors.New("killed")
		}
		return nil
	}
	b.openStore(store)
	w.await("b is killed, or done", func() bool {
		return killed.Load() == 1 || b.has("f", "edited") && b.store.Status().CaughtUp
	})
	b.close()
	wanted := map[string]bool{"edited": true}
	if again {
		if b.has("f", "edited") { // not taken out, or given back: the operator himself replaces it
			delete(wanted, "edited")
		}
		b.write("f", "edited again")
		wanted["edited again"] = true
	}
	b.open()
	w.awaitEqual()
	a.write("g", "1") // cleans up what is staged
	w.await("b has g", func() bool { return b.has("g", "1") })
	a.write("g", "2")
	w.await("b has g", func() bool { return b.has("g", "2") })
	w.awaitEqual()
	for _, n := range []*testNode{a, b} {
		raw, err := os.ReadFile(n.path("f"))
		must(t, err)
		delete(wanted, string(raw))
		for _, c := range n.store.Conflicts(1000) {
			if raw, err := os.ReadFile(c.Kept); err == nil {
				delete(wanted, string(raw))
			}
		}
	}
	if len(wanted) > 0 {
		t.Errorf("lost: %v; live %t", wanted, b.has("f", "new"))
	}
}

func TestParseNote_Damaged(t *testing.T) {
	dir := t.TempDir()
	if j, err := readNote(dir); j != nil || err != nil {
		t.Errorf("none: %+v, %v", j, err)
	}
	must(t, writeNote(dir, &journal{Base: base{Number: 7}}))
	if j, err := readNote(dir); err != nil || j == nil || j.Base.Number != 7 {
		t.Fatalf("%+v, %v", j, err)
	}
	raw, err := os.ReadFile(dir + "/" + noteName)
	must(t, err)
	for i := range raw {
		damaged := append([]byte(nil), raw...)
		damaged[i] ^= 1
		for _, raw := range [][]byte{damaged, raw[:i]} {
			if j, err := parseNote(raw); j != nil || err != nil {
				t.Fatalf("damaged at %d, or cut off there: %+v, %v", i, j, err)
			}
		}
	}
	must(t, removeNote(dir))
	must(t, removeNote(dir))
}

// TestOpen_NoteOfALaterVersion: its switch is not forgotten, and what it says is not guessed.
func TestOpen_NoteOfALaterVersion(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("f", "1")
	w.await("the first revision", func() bool { return a.store.Status().Base > 0 })
	a.close()
	note := filepath.Join(a.state, noteName)
	must(t, os.WriteFile(note, []byte("saltclusterd switch 2\nin another form"), 0o600))
	s, err := New(a.cfg)
	must(t, err)
	if err := s.Open(t.Context()); !errors.Is(err, errNewerNote) {
		t.Errorf("opened: %v", err)
	}
	must(t, os.Remove(note))
	a.open()
}

func FuzzNote(f *testing.F) {
	f.Add([]byte(noteMagic + "1\n"))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = parseNote(raw) })
}

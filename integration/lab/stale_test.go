package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// What lingers is there until it is removed, or, when its program was killed, until the next lab is made.
func TestLab_Linger(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // there are no labs but ours
	labs := func(want int, when string) {
		t.Helper()
		for _, pattern := range []string{"scl*", lockPrefix + "[0-9a-f]*"} {
			if found, _ := filepath.Glob(filepath.Join(os.TempDir(), pattern)); len(found) != want {
				t.Errorf("%s: %q", when, found)
			}
		}
	}
	linger := func() *Lab {
		t.Helper()
		l, err := New(t.Context(), Options{Loopback: true, Linger: true})
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	removed, killed := linger(), linger()
	labs(2, "closed")
	if err := removed.Remove(); err != nil {
		t.Fatal(err)
	}
	labs(1, "removed")
	if err := removed.Remove(); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := killed.lock.Close(); err != nil { // as the end of its program does
		t.Fatal(err)
	}
	next := linger()
	labs(1, "the next lab")
	if _, err := os.Stat(killed.Dir()); err == nil {
		t.Error("what a killed program has left is still there")
	}
	if err := next.Remove(); err != nil {
		t.Fatal(err)
	}
	labs(0, "in the end")
}

func TestLab_Keep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := New(t.Context(), Options{Loopback: true, Keep: true, Linger: true})
	if err == nil {
		err = l.Remove()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Dir()); err != nil {
		t.Error(err)
	}
}

package lab

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
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
		require.NoError(t, err)
		return l
	}
	removed, killed := linger(), linger()
	labs(2, "closed")
	require.NoError(t, removed.Remove())
	labs(1, "removed")
	check.NoError(t, removed.Remove(), "once more")
	require.NoError(t, killed.lock.Close()) // as the end of its program does
	next := linger()
	labs(1, "the next lab")
	if _, err := os.Stat(killed.Dir()); err == nil {
		t.Error("what a killed program has left is still there")
	}
	require.NoError(t, next.Remove())
	labs(0, "in the end")
}

func TestLab_Keep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := New(t.Context(), Options{Loopback: true, Keep: true, Linger: true})
	if err == nil {
		err = l.Remove()
	}
	require.NoError(t, err)
	if _, err := os.Stat(l.Dir()); err != nil {
		t.Error(err)
	}
}

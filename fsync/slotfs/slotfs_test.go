package slotfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestNoSymlinkIsFollowed(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	for name, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret")} {
		require.NoError(t, os.Symlink(target, filepath.Join(top, name)))
	}
	d := open(t, top)
	if _, err := d.Sub("dir"); !Gone(err) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := d.Walk("dir/x"); !Gone(err) {
		t.Errorf("a way through one: %v", err)
	}
	if _, _, err := d.File("file"); !Gone(err) {
		t.Errorf("a file: %v", err)
	}
	if err := d.Chmod("file", 0o777); err == nil {
		t.Error("its permissions were changed")
	}
	if _, err := d.Create("file", false); err == nil {
		t.Error("it was opened for writing")
	}
	if st, err := d.Stat("file"); err != nil || st.Type != tree.Symlink {
		t.Errorf("%+v, %v", st, err)
	}
}

// Opening a pipe does not block.
func TestFile_Pipe(t *testing.T) {
	top := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(top, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, _, err := open(t, top).File("pipe"); !errors.Is(err, ErrNotFile) {
		t.Errorf("%v", err)
	}
}

func TestRenames(t *testing.T) {
	top := t.TempDir()
	for _, n := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(top, n), []byte(n), 0o600))
	}
	d := open(t, top)
	a, b, c := Place{d, "a"}, Place{d, "b"}, Place{d, "c"}
	if err := Move(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := Exchange(a, b); err != nil {
		t.Skip(err)
	}
	if content, _ := os.ReadFile(filepath.Join(top, "a")); string(content) != "b" {
		t.Errorf("a is %q", content)
	}
	check.NoError(t, Move(a, c))
	if err := Move(a, c); !Gone(err) {
		t.Errorf("from nothing: %v", err)
	}
}

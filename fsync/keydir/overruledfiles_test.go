package keydir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOverruledFiles_DiskFull wants a key file that did not fit to be kept when there is room again: it must not pass
// for one that is kept already.
func TestOverruledFiles_DiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 1<<20), 0o600) // as much as there is room for
	a := &overruledFiles{dir: filepath.Join(dir, "aside")}
	key := []byte(keyTexts()[0])
	if err := a.storeFile(0, "web1", key); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.storeFile(0, "web1", key); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(a.dir, place(0).String(), "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %q, %v", kept, err)
	}
	if got, err := os.ReadFile(kept[0]); err != nil || string(got) != string(key) {
		t.Errorf("kept %d bytes of %d, %v", len(got), len(key), err)
	}
}

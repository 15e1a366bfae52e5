package jobcache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSyncTellsOfAnotherDisk: what was written to a cachedir that is another one now was not synced.
func TestSyncTellsOfAnotherDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := &Cache{cfg: Config{CacheDir: dir}, syncer: syncer{fd: -1}}
	if err := c.Sync(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a cachedir: %v", err)
	}
	for _, want := range []error{nil, errOtherDisk} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(t.Context()); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if err := c.Sync(t.Context()); err != nil {
			t.Errorf("the second time: %v", err)
		}
		if err := os.Rename(dir, dir+".old"); err != nil {
			break // there is one already
		}
	}
	if err := c.Close(); err != nil || c.syncer.fd != -1 {
		t.Errorf("%v, %d", err, c.syncer.fd)
	}
}

package jobcache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// TestSyncTellsOfAnotherDisk: what was written to a cachedir that is another one now was not synced.
func TestSyncTellsOfAnotherDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := &Cache{cfg: Config{CacheDir: dir}, disks: newDisks()}
	if err := c.Sync(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a cachedir: %v", err)
	}
	for _, want := range []error{nil, errOtherDisk} {
		require.NoError(t, os.Mkdir(dir, 0o755))
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
	if err := c.Close(); err != nil || c.disks.cache.fd != -1 {
		t.Errorf("%v, %d", err, c.disks.cache.fd)
	}
}

// TestSyncFollowsJobs: jobs may be a link to another file system, which is the one that counts.
func TestSyncFollowsJobs(t *testing.T) {
	dir := t.TempDir()
	shm, err := os.MkdirTemp("/dev/shm", "jobs-") // another file system, where TMPDIR is not there, too
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(shm)
	if !onOtherDisk(shm, dir) {
		t.Skip("TMPDIR is on /dev/shm")
	}
	c := &Cache{cfg: Config{CacheDir: dir}, disks: newDisks()}
	defer c.Close()
	link := filepath.Join(dir, "jobs")
	for _, step := range []struct {
		name string
		do   func() error
		want error
	}{
		{"no jobs yet", func() error { return nil }, nil},
		{"a link", func() error { return os.Symlink(shm, link) }, nil},
		{"still", func() error { return nil }, nil},
		{"here again", func() error { return errors.Join(os.Remove(link), os.Mkdir(link, 0o755)) }, errOtherDisk},
		{"still here", func() error { return nil }, nil},
	} {
		require.NoError(t, step.do())
		if err := c.Sync(t.Context()); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		}
		if there := step.name == "a link" || step.name == "still"; (c.disks.jobs.fd >= 0) != there {
			t.Errorf("%s: the other file system is watched: %v", step.name, !there)
		}
	}
}

package jobcache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// TestSyncTellsOfAnotherDisk: what was written to a cachedir that is another one now was not synced.
func TestSyncTellsOfAnotherDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := &Cache{cfg: Config{CacheDir: dir}, disks: newDisks()}
	check.ErrorIs(t, c.Sync(t.Context()), os.ErrNotExist, "without a cachedir")
	for _, want := range []error{nil, errOtherDisk} {
		require.NoError(t, os.Mkdir(dir, 0o755))
		check.ErrorIs(t, c.Sync(t.Context()), want)
		check.NoError(t, c.Sync(t.Context()), "the second time")
		if err := os.Rename(dir, dir+".old"); err != nil {
			break // there is one already
		}
	}
	if err := c.Close(); err != nil || c.disks.cache.fd != -1 {
		t.Errorf("%v, %d", err, c.disks.cache.fd)
	}
}

// TestSyncer_Takes asks a file system that becomes full, and read-only.
func TestSyncer_Takes(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := NewSyncer(dir)
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Takes(100 << 10); err != nil {
		t.Errorf("there is room: %v", err)
	}
	if err := s.Takes(2 << 20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("more than there is: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 990<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Takes(1); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("full: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	if err := s.Takes(1); !errors.Is(err, unix.EROFS) {
		t.Errorf("read-only: %v", err)
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
		check.ErrorIs(t, c.Sync(t.Context()), step.want, step.name)
		if there := step.name == "a link" || step.name == "still"; (c.disks.jobs.fd >= 0) != there {
			t.Errorf("%s: the other file system is watched: %v", step.name, !there)
		}
	}
}

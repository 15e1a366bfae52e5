package jobcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"saltclusterd/durable"
)

// errOtherDisk: what was written may be gone with the file system it was written to.
var errOtherDisk = errors.New("another file system is mounted at the cachedir")

// syncer brings the job cache's file system onto its disk. The kernel tells of errors only to descriptors that were
// open when they happened, so it keeps one.
type syncer struct{ fd int }

func (s *syncer) closeFiles() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// syncFiles is syncfs of the file system that path is on. An error means that what was written since the last one may
// be lost.
func (s *syncer) syncFiles(path string) error {
	now, err := openDir(path)
	if err != nil {
		return err
	}
	was := s.fd
	if s.fd < 0 {
		s.fd, was = now, now
	} else if !sameDisk(was, now) {
		s.closeFiles()
		s.fd = now
		return errOtherDisk
	} else {
		_ = unix.Close(now)
	}
	if err := unix.Syncfs(was); err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(was, &st); err != nil {
		return err
	}
	if st.Flags&unix.ST_RDONLY != 0 { // syncfs has nothing to say then, whatever was lost
		return unix.EROFS
	}
	return nil
}

func sameDisk(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// watchFiles opens what sync compares with, so that sync tells of errors from now on.
func (s *syncer) watchFiles(path string) {
	if s.fd >= 0 {
		return
	}
	if fd, err := openDir(path); err == nil {
		s.fd = fd
	}
}

// disks are those that hold the job cache: that of cachedir, and that of jobs below it where that is a mount or a link,
// as on a share that several masters have.
type disks struct{ cache, jobs syncer }

func newDisks() disks { return disks{syncer{fd: -1}, syncer{fd: -1}} }

func (d *disks) closeFiles() {
	d.cache.closeFiles()
	d.jobs.closeFiles()
}

func (d *disks) watchFiles(cachedir string) {
	d.cache.watchFiles(cachedir)
	if jobs := filepath.Join(cachedir, "jobs"); onOtherDisk(jobs, cachedir) {
		d.jobs.watchFiles(jobs)
	}
}

func (d *disks) syncFiles(cachedir string) error {
	err := d.cache.syncFiles(cachedir)
	jobs := filepath.Join(cachedir, "jobs")
	if onOtherDisk(jobs, cachedir) {
		return errors.Join(err, d.jobs.syncFiles(jobs))
	}
	if d.jobs.fd >= 0 {
		d.jobs.closeFiles()
		err = errors.Join(err, errOtherDisk)
	}
	return err
}

// onOtherDisk says whether two directories are on different file systems. One that is not there is on none.
func onOtherDisk(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev != y.Dev
}

// watchDisk makes Sync tell of errors from now on, if it is not at work.
func (c *Cache) watchDisk() {
	if c.syncing.TryLock() {
		defer c.syncing.Unlock()
		c.disks.watchFiles(c.cfg.CacheDir)
	}
}

// Sync makes everything written so far survive a power loss (syncfs of the job cache's file systems). After an error it
// may not, also when the next Sync finds nothing wrong: write again what was written since the last good one.
func (c *Cache) Sync(context.Context) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	if err := c.disks.syncFiles(c.cfg.CacheDir); err != nil {
		return fmt.Errorf("sync the job cache: %w", err)
	}
	return nil
}

// Syncer makes what the local master writes into its job cache survive a power loss. Safe for concurrent use.
type Syncer struct {
	cacheDir string

	mu    sync.Mutex
	disks disks
}

// NewSyncer returns a Syncer that reports errors of the disk from now on.
func NewSyncer(cacheDir string) *Syncer {
	s := &Syncer{cacheDir: cacheDir, disks: newDisks()}
	s.disks.watchFiles(cacheDir)
	return s
}

// Sync is Cache.Sync.
func (s *Syncer) Sync(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.disks.syncFiles(s.cacheDir); err != nil {
		return fmt.Errorf("sync the job cache: %w", err)
	}
	return nil
}

// spareRoom is asked for beside a return's own size: for its directory, and its names.
const spareRoom = 64 << 10

// Takes says why so many bytes cannot be written into the job cache now; nil: they can, or the file system does not
// tell. It leaves nothing behind.
func (s *Syncer) Takes(bytes int) error {
	dir := s.cacheDir
	if jobs := filepath.Join(dir, "jobs"); onOtherDisk(jobs, dir) {
		dir = jobs
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Fallocate(fd, 0, 0, int64(bytes)+spareRoom)
		_ = unix.Close(fd)
	}
	if err != nil && durable.IsDiskError(err) {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// Close releases what is held open.
func (s *Syncer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disks.closeFiles()
	return nil
}

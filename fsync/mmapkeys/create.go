package mmapkeys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const tempPrefix = ".saltcluster-index-"

// Sweep removes what a process that died while it made a bank has left in pki.
func Sweep(pki string) {
	left, _ := filepath.Glob(filepath.Join(pki, tempPrefix+"*")) // the pattern is good
	for _, path := range left {
		_ = os.Remove(path)
	}
}

// createFiles makes the files that are missing. The index has all its blocks: Salt maps it, and a write to a hole kills
// a process that finds the disk full.
func (b *Bank) createFiles() error {
	for _, suffix := range []string{".heap", ".roster"} {
		f, err := os.OpenFile(b.path+suffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, fileMode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(b.chownFile(f), f.Close()); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(b.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.createIndex()
}

func (b *Bank) createIndex() error {
	dir := filepath.Dir(b.path)
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no-op after the rename
	err = allocateSpace(f, b.g.indexSize())
	if err == nil {
		_, err = f.WriteAt(header{}.encode(), 0)
	}
	if err = errors.Join(err, b.chownFile(f)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), b.path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func allocateSpace(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	zero := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zero)) {
		if _, err := f.WriteAt(zero[:min(int64(len(zero)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

package datacache

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// folder is a directory of the cache that is open: what is done to a file in it costs one system call, where os.Root walks to it each
// time. Names have no slash, and links are not followed.
type folder struct{ dir *os.File }

func openFolder(root *os.Root, name string) (folder, error) {
	dir, err := root.OpenFile(name, unix.O_DIRECTORY, 0)
	return folder{dir}, err
}

func (d folder) close() { _ = d.dir.Close() }

func (d folder) fd() int { return int(d.dir.Fd()) }

// open returns a descriptor: an os.File would be made known to the poller, and taken back, for a file that is read and closed.
func (d folder) open(name string, flags int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// again repeats what a signal has interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// read returns a file and what look finds of it. One that is not a file is not there.
func (d folder) read(name string, limit int64) ([]byte, sight, error) {
	fd, err := d.open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would block
	if err != nil {
		return nil, sight{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = again(func() error { return unix.Fstat(fd, &st) })
	switch {
	case err != nil:
		return nil, sight{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, sight{}, fs.ErrNotExist
	case st.Size > limit:
		return nil, sight{}, fmt.Errorf("%s: %w", name, errTooLarge)
	}
	raw, n := make([]byte, st.Size), 0
	for n < len(raw) {
		got := 0
		err := again(func() (err error) { got, err = unix.Read(fd, raw[n:]); return err })
		if err != nil {
			return nil, sight{}, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if got == 0 { // somebody has cut it meanwhile
			break
		}
		n += got
	}
	return raw[:n], sight{mtime: st.Mtim.Nano(), size: st.Size, count: 1}, nil
}

// put makes a file appear whole in place of one with the content old (nil: there is none), with the mode and the owner a stock master gives
// it, and returns the time that the file system has noted. It returns errChanged when something else is there.
func (d folder) put(of disk, name string, content, old []byte, at time.Time) (mtime int64, err error) {
	temp := tempPrefix + rand.Text()
	fd, err := d.open(temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, fileMode)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = d.remove(temp)
		}
	}()
	mtime, err = d.fill(fd, temp, of, content, at)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	return mtime, d.replace(temp, name, old)
}

// fill writes a new file.
func (d folder) fill(fd int, name string, of disk, content []byte, at time.Time) (mtime int64, err error) {
	for len(content) > 0 {
		n := 0
		if err := again(func() (err error) { n, err = unix.Write(fd, content); return err }); err != nil {
			return 0, err
		}
		content = content[n:]
	}
	if of.uid >= 0 {
		if err := again(func() error { return unix.Fchown(fd, of.uid, of.gid) }); err != nil {
			return 0, err
		}
	}
	if err := d.touch(name, at); err != nil {
		return 0, err
	}
	var st unix.Stat_t // not every file system knows nanoseconds
	err = again(func() error { return unix.Fstat(fd, &st) })
	return st.Mtim.Nano(), err
}

func (d folder) touch(name string, at time.Time) error {
	when, err := unix.TimeToTimespec(at)
	if err == nil {
		err = again(func() error {
			return unix.UtimesNanoAt(d.fd(), name, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW)
		})
	}
	if err != nil {
		return fmt.Errorf("set the time of %s: %w", name, err)
	}
	return nil
}

func (d folder) remove(name string) error {
	return again(func() error { return unix.Unlinkat(d.fd(), name, 0) })
}

func (d folder) rename(from, to string, flags uint) error {
	return again(func() error {
		if flags == 0 {
			return unix.Renameat(d.fd(), from, d.fd(), to)
		}
		return unix.Renameat2(d.fd(), from, d.fd(), to, flags)
	})
}

// replace gives the file temp the name of one whose content is still old; nil: there is none. A stock master locks nothing, so the two are
// exchanged first, and back again if what came out is not what was expected.
func (d folder) replace(temp, name string, old []byte) error {
	if old == nil {
		err := d.rename(temp, name, unix.RENAME_NOREPLACE)
		switch {
		case unsupported(err):
			return d.rename(temp, name, 0)
		case errors.Is(err, unix.EEXIST):
			return errChanged
		}
		return err
	}
	switch err := d.rename(temp, name, unix.RENAME_EXCHANGE); {
	case unsupported(err):
		return d.replaceChecked(temp, name, old)
	case errors.Is(err, unix.ENOENT): // the master has removed it
		return errChanged
	case err != nil:
		return err
	}
	if is, _, err := d.read(temp, maxFile); err == nil && !bytes.Equal(is, old) {
		return errors.Join(errChanged, d.rename(temp, name, unix.RENAME_EXCHANGE))
	}
	return d.remove(temp)
}

// replaceChecked is replace with a gap of microseconds, for file systems that cannot exchange.
func (d folder) replaceChecked(temp, name string, old []byte) error {
	if is, _, err := d.read(name, maxFile); err != nil || !bytes.Equal(is, old) {
		return errChanged
	}
	return d.rename(temp, name, 0)
}

// unsupported says whether a file system cannot do what renameat2 adds to rename.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

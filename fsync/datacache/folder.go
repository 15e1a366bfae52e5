package datacache

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// folder is a directory of the cache that is open: what is done to a file in it costs one system call, where os.Root
// walks to it each time. Names have no slash, and links are not followed.
type folder struct{ dir *os.File }

func openFolder(root *os.Root, name string) (folder, error) {
	// opening a directory does not block; without O_NONBLOCK package os would set it, and take it back
	dir, err := root.OpenFile(name, unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	return folder{dir}, err
}

func (d folder) close() { _ = d.dir.Close() }

func (d folder) fd() int { return int(d.dir.Fd()) }

// open returns a descriptor. The file is only read and closed; an os.File would be made known to the poller, and taken
// back, each time.
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
	h, err := d.hold(name, limit)
	if err != nil {
		return nil, sight{}, err
	}
	h.close()
	return h.raw, h.is, nil
}

// held is a file that was read and is open still, so that no other one gets its inode.
type held struct {
	fd    int
	inode inode
	raw   []byte
	is    sight
}

// inode tells one file from another.
type inode struct{ dev, ino uint64 }

func (h held) close() { _ = unix.Close(h.fd) }

// hold is read of a file that stays open.
func (d folder) hold(name string, limit int64) (h held, err error) {
	fd, err := d.open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would block
	if err != nil {
		return held{}, err
	}
	h.fd = fd
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	var st unix.Stat_t
	err = again(func() error { return unix.Fstat(fd, &st) })
	switch {
	case err != nil:
		return h, &fs.PathError{Op: "stat", Path: name, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return h, fs.ErrNotExist
	case st.Size > limit:
		return h, fmt.Errorf("%s: %w", name, errTooLarge)
	}
	h.inode = inode{st.Dev, st.Ino}
	h.is = sightOf(h.inode, st.Mtim.Nano(), st.Size)
	h.raw = make([]byte, st.Size)
	n := 0
	for n < len(h.raw) {
		got := 0
		err := again(func() (err error) { got, err = unix.Read(fd, h.raw[n:]); return err })
		if err != nil {
			return h, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if got == 0 { // it has been cut meanwhile
			break
		}
		n += got
	}
	h.raw = h.raw[:n]
	return h, nil
}

// stat is of a name, not of what it may be a link to.
func (d folder) stat(name string) (is inode, s sight, err error) {
	var st unix.Stat_t
	err = again(func() error { return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return inode{}, sight{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	is = inode{st.Dev, st.Ino}
	return is, sightOf(is, st.Mtim.Nano(), st.Size), nil
}

// prior is the file whose place another one takes.
type prior struct {
	raw []byte // nil: there is none
	// held is what look finds of it while it is open, so that no other file gets its inode: whoever has the same is the
	// same, unread, for masters write no file in place (salt/cache/localfs.py store). Who does, and leaves size and time
	// as they were, is not seen. Without it (count 0) the content is compared.
	held sight
}

// put makes a file appear whole in place of old, with the mode and the owner a stock master gives it, and returns what
// look finds of it. It returns errChanged when something else is there.
func (d folder) put(of disk, name string, content []byte, old prior, at time.Time) (sight, error) {
	temp := tempName()
	fd, err := d.open(temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, fileMode)
	if err != nil {
		return sight{}, err
	}
	ours, mtime, err := d.fill(fd, temp, of, content, at)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		_ = d.remove(temp)
	} else {
		err = d.replace(temp, name, ours, old)
	}
	if err != nil {
		return sight{}, fmt.Errorf("write %s: %w", name, err)
	}
	return sightOf(ours, mtime, int64(len(content))), nil
}

// renew gives a file that was read the time at, and returns that which the file system has noted; errChanged: the name
// is another file's by now, which has got that time and is to be read.
func (d folder) renew(name string, was inode, at time.Time) (mtime int64, err error) {
	if err := d.touch(name, at); err != nil { // by name: by descriptor it takes Linux 5.8
		if errors.Is(err, unix.ENOENT) {
			return 0, errChanged
		}
		return 0, err
	}
	is, s, err := d.stat(name)
	switch {
	case errors.Is(err, unix.ENOENT), err == nil && is != was:
		return 0, errChanged
	case err != nil:
		return 0, err
	}
	return s.mtime, nil
}

// fill writes a new file.
func (d folder) fill(fd int, name string, of disk, content []byte, at time.Time) (is inode, mtime int64, err error) {
	for len(content) > 0 {
		n := 0
		if err := again(func() (err error) { n, err = unix.Write(fd, content); return err }); err != nil {
			return inode{}, 0, err
		}
		content = content[n:]
	}
	if err := d.touch(name, at); err != nil {
		return inode{}, 0, err
	}
	var st unix.Stat_t // not every file system knows nanoseconds
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return inode{}, 0, err
	}
	if of.uid >= 0 && (int(st.Uid) != of.uid || int(st.Gid) != of.gid) {
		err = again(func() error { return unix.Fchown(fd, of.uid, of.gid) })
	}
	return inode{st.Dev, st.Ino}, st.Mtim.Nano(), err
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

// replace gives the file temp, with that inode, the name of one that is still old. A stock master locks nothing, so the
// two are exchanged first, and back again if what came out is not what was expected. After an error temp is removed,
// unless it alone holds what the master wrote.
func (d folder) replace(temp, name string, ours inode, old prior) error {
	err := d.swap(temp, name, old)
	if err != nil {
		_ = d.remove(temp)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) { // the master has written it first, or removed it
			return errChanged
		}
		return err
	}
	if old.raw == nil {
		return nil
	}
	same, err := d.still(temp, old)
	switch {
	case errors.Is(err, unix.ENOENT): // they were not exchanged
	case errors.Is(err, unix.ELOOP), same: // links are replaced, as by a master
		_ = d.remove(temp) // it is written; if this fails it is left for the next start
	default:
		return d.giveBack(temp, name, ours)
	}
	return nil
}

// still says whether a file is old.
func (d folder) still(name string, old prior) (bool, error) {
	if old.held.count != 0 {
		if _, s, err := d.stat(name); err == nil && s == old.held {
			return true, nil
		}
	}
	is, _, err := d.read(name, int64(len(old.raw)))
	return err == nil && bytes.Equal(is, old.raw), err
}

// swap exchanges temp and name; without old, or where that is impossible, it renames.
func (d folder) swap(temp, name string, old prior) error {
	flags := uint(unix.RENAME_EXCHANGE)
	if old.raw == nil {
		flags = unix.RENAME_NOREPLACE
	}
	err := d.rename(temp, name, flags)
	if !unsupported(err) {
		return err
	}
	if old.raw != nil { // with a gap of microseconds
		if same, _ := d.still(name, old); !same {
			return errChanged
		}
	}
	return d.rename(temp, name, 0)
}

// giveBack returns to a name what was exchanged for the file put, and removes that. What the master has written since
// comes out instead, and goes back in its turn.
func (d folder) giveBack(temp, name string, put inode) error {
	for range maxAgain {
		taken, _, err := d.stat(temp)
		if err != nil {
			return err
		}
		switch err := d.rename(temp, name, unix.RENAME_EXCHANGE); {
		case errors.Is(err, unix.ENOENT): // the master has removed it, later than it wrote temp
			_ = d.remove(temp)
			return errChanged
		case err != nil:
			return fmt.Errorf("restore what the master wrote, in %s: %w", temp, err)
		}
		out, _, err := d.stat(temp)
		if err != nil {
			return err
		}
		if out == put {
			_ = d.remove(temp)
			return errChanged
		}
		put = taken
	}
	return errors.Join(errChanged, d.rename(temp, name, 0))
}

// unsupported says whether a file system cannot do what renameat2 adds to rename.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

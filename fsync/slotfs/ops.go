package slotfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/tree"
)

// ErrNotFile says that a name is not a regular file.
var ErrNotFile = errors.New("not a regular file")

// File opens a regular file for reading.
func (d *Dir) File(name string) (*os.File, Stat, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return nil, Stat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, Stat{}, errors.Join(&fs.PathError{Op: "stat", Path: name, Err: err}, f.Close())
	}
	s := fromUnix(&st)
	if s.Type != tree.File {
		return nil, Stat{}, errors.Join(&fs.PathError{Op: "open", Path: name, Err: ErrNotFile}, f.Close())
	}
	return f, s, nil
}

// Create makes a file that is not there yet, or opens the one that is when fresh is not set.
func (d *Dir) Create(name string, fresh bool) (*os.File, error) {
	flags := unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if fresh {
		flags |= unix.O_EXCL
	}
	fd, err := retryEINTR(func() (int, error) { return unix.Openat(d.fd(), name, flags, 0o600) })
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Readlink returns the text of a symlink.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, tree.MaxTarget+2)
	n, err := retryEINTR(func() (int, error) { return unix.Readlinkat(d.fd(), name, buf) })
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	if n > tree.MaxTarget {
		return "", fmt.Errorf("symlink %q: %w", name, tree.ErrTooLarge)
	}
	return string(buf[:n]), nil
}

// Symlink makes a symlink.
func (d *Dir) Symlink(target, name string) error {
	return wrapError("symlink", name, unix.Symlinkat(target, d.fd(), name))
}

// Mkdir makes a directory with exactly these permissions.
func (d *Dir) Mkdir(name string, mode uint16) error {
	if err := unix.Mkdirat(d.fd(), name, 0o700); err != nil {
		return wrapError("mkdir", name, err)
	}
	return d.Chmod(name, mode)
}

// Chmod sets the permissions of a file or directory.
func (d *Dir) Chmod(name string, mode uint16) error {
	return d.withFile("chmod", name, func(fd int) error { return unix.Fchmod(fd, uint32(mode)) })
}

// Chown sets the owner of a file or directory.
func (d *Dir) Chown(name string, uid, gid int) error {
	return wrapError("chown", name, unix.Fchownat(d.fd(), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW))
}

func (d *Dir) withFile(op, name string, do func(fd int) error) error {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return wrapError(op, name, err)
	}
	return wrapError(op, name, errors.Join(do(fd), unix.Close(fd)))
}

// Remove removes what is not a directory.
func (d *Dir) Remove(name string) error {
	return wrapError("remove", name, unix.Unlinkat(d.fd(), name, 0))
}

// RemoveDir removes an empty directory.
func (d *Dir) RemoveDir(name string) error {
	return wrapError("remove directory", name, unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR))
}

// FlushNames brings the names in the directory to the disk, and waits for it.
func (d *Dir) FlushNames() error { return wrapError("fsync", d.f.Name(), unix.Fsync(d.fd())) }

// Flush writes all that the file system of the directory has in memory.
func (d *Dir) Flush() error { return wrapError("syncfs", d.f.Name(), unix.Syncfs(d.fd())) }

func wrapError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// FlushFile brings a file to the disk.
func (d *Dir) FlushFile(name string) error {
	return d.withFile("fsync", name, unix.Fsync)
}

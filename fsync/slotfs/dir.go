package slotfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is an open directory.
type Dir struct{ f *os.File }

// Open opens a directory by its path; a symlink is followed here, and nowhere else.
func Open(path string) (*Dir, error) {
	return openAt(unix.AT_FDCWD, path, 0)
}

func openAt(at int, name string, flags int) (*Dir, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open directory", Path: name, Err: err}
	}
	return &Dir{os.NewFile(uintptr(fd), name)}, nil
}

// retryEINTR repeats what a signal has interrupted.
func retryEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Close closes the directory.
func (d *Dir) Close() error { return d.f.Close() }

func (d *Dir) fd() int { return int(d.f.Fd()) }

// Sub opens a directory in this one.
func (d *Dir) Sub(name string) (*Dir, error) { return openAt(d.fd(), name, unix.O_NOFOLLOW) }

// Walk opens the directory at a path below this one; "" is this one.
func (d *Dir) Walk(path string) (*Dir, error) {
	cur, err := d.Sub(".")
	for path != "" && err == nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		parent := cur
		cur, err = parent.Sub(name)
		_ = parent.Close()
	}
	return cur, err
}

// Parent opens the directory that holds a path, and returns the path's last name.
func (d *Dir) Parent(path string) (*Dir, string, error) {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	p, err := d.Walk(dir)
	return p, name, err
}

// Names lists what is in the directory, unsorted. It can be called once.
func (d *Dir) Names() ([]string, error) {
	names, err := d.f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.f.Name(), err)
	}
	return names, nil
}

// Gone says whether an error means that there is nothing at a path, or that a directory on the way is none.
func Gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

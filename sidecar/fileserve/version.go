package fileserve

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// identity tells one content of a file from any other.
type identity struct {
	dev, ino, size uint64
	mtime, ctime   int64 // ns
}

// status is what stat(2) says of a file.
type status struct {
	syscall.Stat_t
}

func (s *status) fileIdentity() identity {
	return identity{
		dev: s.Dev, ino: s.Ino, size: uint64(s.Size), mtime: s.Mtim.Nano(), ctime: s.Ctim.Nano(),
	}
}

func (s *status) isRegular() bool { return s.Mode&syscall.S_IFMT == syscall.S_IFREG }

// sameFile says whether two identities are of one file, whatever was written to it between.
func (i identity) sameFile(o identity) bool { return i.dev == o.dev && i.ino == o.ino }

const (
	// fineClock is more than a tick of the clock from which file systems take their times.
	fineClock = 50 * time.Millisecond
	// coarseClock is that of file systems that keep whole seconds, or two.
	coarseClock = 2500 * time.Millisecond
)

// isSettled says whether a further change of a file would change its identity: not while the clock may show the same
// time as at the last one.
func (i identity) isSettled(now time.Time) bool {
	age := now.UnixNano() - i.ctime
	if i.ctime%int64(time.Second) == 0 {
		return age > int64(coarseClock)
	}
	return age > int64(fineClock)
}

// statPath is os.stat. found is false where os.path.isfile would say no; an error is a disk in trouble.
func statPath(name string) (s status, found bool, err error) {
	for {
		err = syscall.Stat(name, &s.Stat_t)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return s, err == nil, err
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL:
		return s, false, nil
	}
	return s, false, fmt.Errorf("stat %s: %w", name, errno)
}

// openFlags never wait for whoever is at the other end of a pipe that took the file's place.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// errChanged says that a file is not what it was a moment ago.
var errChanged = errors.New("the file was replaced meanwhile")

// openFile opens what was found.
func (f *found) openFile() (_ *os.File, err error) {
	var file *os.File
	if f.realRoot == "" {
		file, err = os.OpenFile(f.full, openFlags, 0)
	} else {
		file, err = openInside(f.realRoot, f.realRel)
	}
	if err != nil {
		return nil, err
	}
	s, err := statFile(file)
	if err == nil && (!s.isRegular() || s.fileIdentity() != f.fileIdentity()) {
		err = errChanged
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open %s: %w", f.full, err)
	}
	return file, nil
}

// openInside opens a file by a walk that cannot leave root.
func openInside(root, rel string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.OpenFile(rel, openFlags, 0)
}

func statFile(f *os.File) (s status, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return s, err
	}
	cerr := raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &s.Stat_t) })
	return s, errors.Join(cerr, err)
}

package slotfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/tree"
)

// Stat is what the disk says about a name, without following it.
type Stat struct {
	Type         tree.Type // 0: something that a tree does not hold
	Mode         uint16    // permission bits; 0 of symlinks
	Size         int64
	Mtime, Ctime int64 // nanoseconds
	Ino, Dev     uint64
}

// Unchanged says whether a file is, to all appearances, the one it was, with the same content. Its name may have
// changed, and its permissions.
func (s Stat) Unchanged(o Stat) bool {
	return s.Type == o.Type && s.Ino == o.Ino && s.Dev == o.Dev && s.Size == o.Size && s.Mtime == o.Mtime
}

// Stat looks at a name.
func (d *Dir) Stat(name string) (Stat, error) {
	var st unix.Stat_t
	_, err := retryEINTR(func() (int, error) {
		return 0, unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return fromUnix(&st), nil
}

// Self looks at the directory.
func (d *Dir) Self() (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd(), &st); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: d.f.Name(), Err: err}
	}
	return fromUnix(&st), nil
}

func fromUnix(st *unix.Stat_t) Stat {
	s := Stat{
		Mode: uint16(st.Mode & 0o777), Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		Ino: st.Ino, Dev: uint64(st.Dev),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Type = tree.File
	case unix.S_IFDIR:
		s.Type = tree.Dir
	case unix.S_IFLNK:
		s.Type, s.Mode = tree.Symlink, 0
	}
	return s
}

// Space tells how many bytes the file system of the directory has left for us, and how many it has in all.
func (d *Dir) Space() (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(d.fd(), &st); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: d.f.Name(), Err: err}
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

// StatFile looks at an open file.
func StatFile(f *os.File) (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return fromUnix(&st), nil
}

package datacache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// maxFile bounds one file of data, in bytes.
const maxFile = 16 << 20

var errTooLarge = errors.New("too large")

// disk is the master's cachedir.
type disk struct {
	dir      string
	uid, gid int
}

func (d disk) root() (*os.Root, error) {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, fmt.Errorf("open cachedir: %w", err)
	}
	return root, nil
}

// sight is what stat tells of a minion's files; equal ones need no second reading.
type sight struct {
	mtime int64 // of the newest, in nanoseconds
	size  int64 // of all
	count int
	// of which files they are and of the time of each: the kernel's clock for files stands still for milliseconds
	mark uint64
}

// unseen is equal to nothing that look finds.
func unseen() sight { return sight{count: -1} }

// sightOf is that of one file.
func sightOf(is inode, mtime, size int64) sight {
	return sight{mtime: mtime, size: size, count: 1, mark: mix(is.ino ^ mix(uint64(mtime)))}
}

// and is that of more files.
func (s sight) and(o sight) sight {
	return sight{max(s.mtime, o.mtime), s.size + o.size, s.count + o.count, s.mark + o.mark}
}

// mix spreads each bit over all (the last step of splitmix64), so that sums of it tell sets apart.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func look(root *os.Root, names []string) (s sight) {
	for _, name := range names {
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		var is inode
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			is = inode{st.Dev, st.Ino}
		}
		s = s.and(sightOf(is, info.ModTime().UnixNano(), info.Size()))
	}
	return s
}

// read reads those of a minion's files that are there.
func read(root *os.Root, names []string) (fileSet, error) {
	out := fileSet{}
	for _, name := range names {
		raw, err := readFile(root, name, maxFile)
		switch {
		case err == nil:
			out[name] = raw
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return out, nil
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name) // before opening: a pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %w", name, errTooLarge)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s: %w", name, errTooLarge)
	}
	return raw, err
}

const (
	// fileMode is what mkstemp gives the files of localfs (salt/cache/localfs.py store).
	fileMode = 0o600
	// dirMode is what os.makedirs gives directories under a master's umask.
	dirMode = 0o755
)

// folder opens a directory of the cache, which is made when there is none.
func (d disk) folder(root *os.Root, name string) (folder, error) {
	f, err := openFolder(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.mkdir(root, name); err == nil {
			f, err = openFolder(root, name)
		}
	}
	return f, err
}

// put is folder.put of a file anywhere in the cache, in place of one with the content old; nil: there is none.
func (d disk) put(root *os.Root, name string, content, old []byte, at time.Time) (is sight, err error) {
	f, err := d.folder(root, path.Dir(name))
	if err != nil {
		return sight{}, err
	}
	defer f.close()
	return f.put(d, path.Base(name), content, prior{raw: old}, at)
}

func (d disk) mkdir(root *os.Root, name string) error {
	if info, err := root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if parent := path.Dir(name); parent != "." {
		if err := d.mkdir(root, parent); err != nil {
			return err
		}
	}
	if err := root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if d.uid >= 0 {
		return root.Chown(name, d.uid, d.gid)
	}
	return nil
}

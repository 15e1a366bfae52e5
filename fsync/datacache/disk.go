package datacache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
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
}

func look(root *os.Root, names []string) (s sight) {
	for _, name := range names {
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
			s.mtime = max(s.mtime, info.ModTime().UnixNano())
			s.size += info.Size()
			s.count++
		}
	}
	return s
}

// sightOf is what look will find when all files of a minion have just been written with that time; else nothing that it ever finds.
func sightOf(all, written fileSet, mtime int64) sight {
	if len(all) != len(written) {
		return sight{count: -1}
	}
	s := sight{mtime: mtime, count: len(all)}
	for _, content := range all {
		s.size += int64(len(content))
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

// put is folder.put of a file anywhere in the cache.
func (d disk) put(root *os.Root, name string, content, old []byte, at time.Time) (mtime int64, err error) {
	f, err := d.folder(root, path.Dir(name))
	if err != nil {
		return 0, err
	}
	defer f.close()
	return f.put(d, path.Base(name), content, old, at)
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

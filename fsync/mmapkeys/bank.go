package mmapkeys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/dirid"
)

// The banks of a store, by the names of their index files.
const (
	Keys       = ".mmap_keys.idx"
	DeniedKeys = ".mmap_denied.idx"
	MasterKeys = ".mmap_master.idx"

	// Prefix is what the names of all files of a store begin with.
	Prefix = ".mmap_"

	// fileMode is stricter than Salt's: the master's private key is in one of the banks.
	fileMode = 0o600
	// maxValue bounds what is read of one value; the longest key of a master takes a quarter of it.
	maxValue = 64 << 10
	// maxSegments is how many there can be.
	maxSegments = 1 << 16
)

// Bank is one table. It is safe for concurrent use: the lock is on the disk.
type Bank struct {
	path string
	g    Geometry
}

// NewBank returns the bank called name in the directory pki. There need not be one yet.
func NewBank(pki, name string, g Geometry) (*Bank, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return &Bank{filepath.Join(pki, name), g}, nil
}

// chownFile gives a new file to the owner of pki_dir, who is the user of the master, as far as we may.
func (b *Bank) chownFile(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Dir(b.path), &st); err != nil {
		return err
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// openFile opens one of the bank's files and makes sure that it is one.
func openFile(path string, flags int) (*os.File, int64, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file", ErrFormat, filepath.Base(path))
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Mark changes whenever the content of a bank does, and some time later at most. Compare two of them.
type Mark struct {
	index, heap, roster stamp
	segments            int
}

type stamp struct {
	id    dirid.ID
	size  int64
	mtime int64
}

func stampOf(path string) stamp {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{dirid.Of(path), info.Size(), info.ModTime().UnixNano()}
}

// Mark looks without the lock.
func (b *Bank) Mark() Mark {
	m := Mark{index: stampOf(b.path), roster: stampOf(b.path + ".roster")}
	for m.segments < maxSegments {
		s := stampOf(b.segmentPath(m.segments))
		if s == (stamp{}) {
			break
		}
		m.heap = s
		m.segments++
	}
	return m
}

// Identity tells a bank from one that was put in its place, or made anew; empty when there is none.
func (m Mark) Identity() string { return m.index.id.Text() }

func (b *Bank) segmentPath(n int) string {
	if n == 0 {
		return b.path + ".heap"
	}
	return b.path + ".heap." + strconv.Itoa(n)
}

// table is a bank opened under its lock.
type table struct {
	b        *Bank
	index    *os.File
	segments []*os.File
	sizes    []int64
	roster   *os.File // nil: there is none
	rostered int64    // its size
}

// openTable returns fs.ErrNotExist when the bank does not exist.
func (b *Bank) openTable(flags int) (t *table, err error) {
	t = &table{b: b}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	var size int64
	if t.index, size, err = openFile(b.path, flags); err != nil {
		return t, err
	}
	if size != b.g.indexSize() {
		return t, fmt.Errorf("%w: %d bytes, not %d", ErrGeometry, size, b.g.indexSize())
	}
	for len(t.segments) < maxSegments {
		f, size, err := openFile(b.segmentPath(len(t.segments)), flags)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return t, err
		}
		t.segments, t.sizes = append(t.segments, f), append(t.sizes, size)
	}
	t.roster, t.rostered, err = openFile(b.path+".roster", flags)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	return t, err
}

func (t *table) close() {
	for _, f := range append(t.segments, t.index, t.roster) {
		if f != nil {
			_ = f.Close()
		}
	}
}

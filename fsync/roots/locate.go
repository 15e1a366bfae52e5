package roots

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// location is where a chunk is on this disk, to all we know.
type location struct {
	top    string // a slot's directory, or what is displaced from one
	path   string // below it
	offset int64
	size   uint32
	item   *scan.Item // what the last scan saw of the file; nil: of what is displaced nothing is known
}

// errNotHere says that content is not on this disk.
var errNotHere = errors.New("not on this disk")

// locations returns where all chunks are.
func (s *Store) locations() map[Hash]location {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.located != nil {
		return s.located
	}
	out := map[Hash]location{}
	add := func(top, path string, chunks []tree.Chunk, item *scan.Item) {
		offset := int64(0)
		for _, c := range chunks {
			out[c.Hash] = location{top, path, offset, c.Size, item}
			offset += int64(c.Size)
		}
	}
	for _, st := range s.slots {
		if st.area == "" {
			continue
		}
		for content, k := range s.kept[st.Name] {
			add(st.area+"/keep", content.String(), k.Chunks, nil)
		}
	}
	for _, st := range s.slots {
		if st.unavailable != "" {
			continue
		}
		for path, item := range st.index {
			add(st.Dir, path, item.Chunks, item)
		}
	}
	s.located = out
	return out
}

// diskReader reads chunks of this disk one after the other.
type diskReader struct {
	where map[Hash]location
	// unread: a file is taken for what the last scan saw if the disk shows it as then. For those who verify what they get.
	unread bool
	dirs   map[string]*slotfs.Dir
	buf    []byte

	last     *slotfs.Dir // the directory of the last chunk
	lastPath string
}

func (s *Store) newDiskReader() *diskReader {
	return &diskReader{where: s.locations(), dirs: map[string]*slotfs.Dir{}}
}

func (d *diskReader) close() {
	if d.last != nil {
		_ = d.last.Close()
	}
	for _, dir := range d.dirs {
		_ = dir.Close()
	}
}

// chunk reads a chunk, and verifies it where it must. The result is valid until the next call.
func (d *diskReader) chunk(h Hash) ([]byte, error) {
	at, ok := d.where[h]
	if !ok {
		return nil, errNotHere
	}
	dir, name, err := d.parent(at)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	f, now, err := dir.File(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	defer f.Close()
	d.buf = slices.Grow(d.buf[:0], int(at.size))[:at.size]
	if _, err := f.ReadAt(d.buf, at.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	if !(d.unread && at.item.Fresh(now)) && tree.Sum(d.buf) != h {
		return nil, fmt.Errorf("%w: %q has changed", errNotHere, at.path)
	}
	return d.buf, nil
}

// parent opens the directory that a chunk's file is in.
func (d *diskReader) parent(at location) (*slotfs.Dir, string, error) {
	top := d.dirs[at.top]
	if top == nil {
		var err error
		if top, err = slotfs.Open(at.top); err != nil {
			return nil, "", err
		}
		d.dirs[at.top] = top
	}
	i := strings.LastIndexByte(at.path, '/')
	path := at.top + "\x00" + at.path[:max(i, 0)]
	if d.last != nil && d.lastPath == path {
		return d.last, at.path[i+1:], nil
	}
	dir, name, err := top.Parent(at.path)
	if err != nil {
		return nil, "", err
	}
	if d.last != nil {
		_ = d.last.Close()
	}
	d.last, d.lastPath = dir, path
	return dir, name, nil
}

package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Options are what a scan needs to know.
type Options struct {
	Ignore Ignore
	Last   Index // of the last scan
	// Known returns what the tree had at a path; nil: nothing. It and Enter are called from several goroutines.
	Known func(path string) *tree.Entry
	// Enter is called for each directory before it is read, with "" for the slot's.
	Enter func(path string)
	// Keep gets the content of files that were read, when it is one piece; it is valid during the call. It may be nil, and
	// is called from several goroutines.
	Keep func(h tree.Hash, content []byte)
	// Workers list directories and read files in parallel; at least one.
	Workers int
}

// Result is what a scan has found.
type Result struct {
	Dir       tree.Hash // of the slot
	Objects   tree.Memory
	Index     Index
	Files     int
	Bytes     int64
	Read      int      // files that had to be read
	Unsettled bool     // files were changing
	Changing  string   // one of them; empty when what changed was not a file
	Problems  []string // paths that are not part of the tree though they should be
}

// maxFiles bounds the entries of a slot.
const maxFiles = tree.MaxSlot

// Slot scans a directory.
func Slot(ctx context.Context, dir *slotfs.Dir, opts Options) (*Result, error) {
	opts.Workers = max(opts.Workers, 1)
	s := &scanner{
		ctx: ctx, root: dir, opts: opts, res: &Result{Objects: tree.Memory{}, Index: make(Index, len(opts.Last))},
		more: make(chan struct{}, opts.Workers-1),
	}
	top := &node{}
	self, err := dir.Sub(".")
	if err != nil {
		return nil, err
	}
	if err := s.listAll(self, top); err != nil {
		return nil, err
	}
	if err := s.readAll(); err != nil {
		return nil, err
	}
	s.res.Dir, err = s.encodeDir(top, "")
	return s.res, err
}

type scanner struct {
	ctx     context.Context
	root    *slotfs.Dir
	opts    Options
	res     *Result
	pending []*node       // files to read
	more    chan struct{} // a place for each lister beside the first

	wg   sync.WaitGroup
	seen atomic.Int64

	mu  sync.Mutex // guards err, and res and pending while there are several listers
	err error
}

// node is an entry while the tree is built.
type node struct {
	entry    tree.Entry
	path     string
	stat     slotfs.Stat
	drop     bool // not part of the tree
	kept     bool // as the tree has it, whatever is there
	others   bool // a directory that holds what is not part of the tree
	children []node
}

// listAll lists everything; it closes top.
func (s *scanner) listAll(top *slotfs.Dir, n *node) error {
	first := &lister{scanner: s}
	err := first.listDir(top, n, "", 0)
	first.mergeResults(err)
	s.wg.Wait()
	return s.err
}
func (s *lister) listLink(d *slotfs.Dir, n *node, name string) error {
	now := time.Now()
	target, err := d.Readlink(name)
	if err != nil || target == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slotfs.Gone(err) {
			s.addProblem(n.path, err)
		}
		return s.asKnown(n)
	}
	n.entry.Target = target
	s.items = append(s.items, found{n.path, &Item{Stat: n.stat, Target: target, Racy: isRacy(n.stat, now)}})
	return nil
}

// raciness is more than the resolution of any file system's times.
const raciness = 50 * time.Millisecond

func isRacy(st slotfs.Stat, now time.Time) bool { return Racy(max(st.Ctime, st.Mtime), now) }

// Racy says whether a file that was changed then, in nanoseconds, may be changed now without that its times show it.
func Racy(changed int64, now time.Time) bool {
	d := now.UnixNano() - changed
	return d < int64(raciness) && d > -int64(raciness)
}

// Telling is when the times of a file that was changed then begin to tell the next change.
func Telling(changed int64) time.Time { return time.Unix(0, changed).Add(raciness) }

// errSpecial is said of what no tree holds where the tree has something.
var errSpecial = errors.New("a device, pipe or socket is where the cluster has something else, and stays")

// skipSpecial passes over a device, a pipe or a socket. Where the tree has something, that does not count as its
// deletion.
func (s *lister) skipSpecial(parent *node, path, name string) error {
	known := s.knownEntry(path)
	if known == nil {
		parent.others = true
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addProblem(path, errSpecial)
	n := node{path: path, kept: true, entry: *known}
	n.entry.Name = name
	parent.children = append(parent.children, n)
	return nil
}

// knownEntry is what the tree had at a path.
func (s *scanner) knownEntry(path string) *tree.Entry {
	if s.opts.Known == nil {
		return nil
	}
	return s.opts.Known(path)
}

// asKnown leaves a path as the tree has it: it is changing, or too large.
func (s *scanner) asKnown(n *node) error {
	s.res.Unsettled = true
	known := s.knownEntry(n.path)
	if known == nil {
		n.drop = true
		return nil
	}
	name := n.entry.Name
	n.entry, n.kept = *known, true
	n.entry.Name = name
	return nil
}

// maxProblems bounds what a scan reports.
const maxProblems = 20

func (s *scanner) addProblem(path string, err error) {
	if err == nil {
		err = errors.New("empty symlink")
	}
	if len(s.res.Problems) < maxProblems {
		s.res.Problems = append(s.res.Problems, fmt.Sprintf("%q: %v", path, err))
	}
}

// encodeDir makes the object of a directory whose entries are complete.
func (s *scanner) encodeDir(n *node, path string) (tree.Hash, error) {
	entries := make([]tree.Entry, 0, len(n.children))
	for i := range n.children {
		c := &n.children[i]
		if c.drop {
			n.others = true
			continue
		}
		if c.entry.Type == tree.Dir && !c.kept {
			h, err := s.encodeDir(c, c.path)
			if err != nil {
				return h, err
			}
			if c.drop {
				n.others = true
				continue
			}
			c.entry.Object = h
			s.res.Index[c.path] = &Item{Stat: slotfs.Stat{Type: tree.Dir, Mode: c.stat.Mode, Ino: c.stat.Ino, Dev: c.stat.Dev}}
		} else if c.entry.Type != tree.Dir {
			s.res.Files++
			s.res.Bytes += c.entry.Size()
		}
		entries = append(entries, c.entry)
	}
	if len(entries) == 0 && n.others && path != "" && s.knownEntry(path) == nil {
		n.drop = true
		return tree.Hash{}, nil
	}
	return s.res.Objects.PutDir(entries)
}

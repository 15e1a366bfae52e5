package scan

import (
	"fmt"
	"slices"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// lister lists a part of the directories, and has what it found for itself until it is done.
type lister struct {
	*scanner
	items     []found
	files     []*node // to be read
	unsettled bool
}

type found struct {
	path string
	item *Item
}

// mergeResults hands over what was found.
func (s *lister) mergeResults(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.items {
		s.res.Index[f.path] = f.item
	}
	s.pending = append(s.pending, s.files...)
	s.res.Unsettled = s.res.Unsettled || s.unsettled
	if s.scanner.err == nil {
		s.scanner.err = err
	}
}

// listBelow lists a directory, by another lister when there is a place for one.
func (s *lister) listBelow(d *slotfs.Dir, n *node, prefix string, depth int) error {
	select {
	case s.more <- struct{}{}:
	default:
		return s.listDir(d, n, prefix, depth)
	}
	s.wg.Go(func() {
		other := &lister{scanner: s.scanner}
		err := other.listDir(d, n, prefix, depth)
		<-s.more
		other.mergeResults(err)
	})
	return nil
}

// listDir lists one directory and those below it; it closes d.
func (s *lister) listDir(d *slotfs.Dir, n *node, prefix string, depth int) error {
	defer d.Close()
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if depth > tree.MaxDepth {
		return fmt.Errorf("%w: directories %d deep at %q", tree.ErrTooLarge, depth, prefix)
	}
	if s.opts.Enter != nil {
		s.opts.Enter(n.path)
	}
	names, err := d.Names()
	if err != nil {
		return err
	}
	if s.seen.Add(int64(len(names))) > maxFiles {
		return fmt.Errorf("%w: more than %d files", tree.ErrTooLarge, maxFiles)
	}
	slices.Sort(names)                       // as a tree has them: to sort entries costs more
	n.children = make([]node, 0, len(names)) // it never grows: others have pointers into it
	for _, name := range names {
		if err := s.listName(d, n, prefix, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *lister) listName(d *slotfs.Dir, parent *node, prefix, name string, depth int) error {
	path := prefix + name
	if tree.CheckName(name) != nil || s.opts.Ignore.Match(path, name) && s.knownEntry(path) == nil {
		parent.others = true
		return nil
	}
	st, err := d.Stat(name)
	if slotfs.Gone(err) {
		s.unsettled = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("scan %q: %w", path, err)
	}
	if st.Type == 0 {
		return s.skipSpecial(parent, path, name)
	}
	var sub *slotfs.Dir
	if st.Type == tree.Dir {
		if sub, err = d.Sub(name); slotfs.Gone(err) {
			s.unsettled = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("scan %q: %w", path, err)
		}
	}
	parent.children = append(parent.children,
		node{path: path, stat: st, entry: tree.Entry{Name: name, Type: st.Type, Mode: st.Mode}})
	n := &parent.children[len(parent.children)-1]
	if sub != nil {
		return s.listBelow(sub, n, path+"/", depth+1)
	}
	if last := s.opts.Last[path]; last.Fresh(st) {
		n.entry.Chunks, n.entry.Target = last.Chunks, last.Target
		s.items = append(s.items, found{path, last})
		return nil
	}
	if st.Type == tree.File {
		s.files = append(s.files, n)
		return nil
	}
	return s.listLink(d, n, name)
}

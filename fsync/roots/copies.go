package roots

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/slotfs"
)

// lookFor is how long Conflicts looks for copies on a file system that may hang. Members wait longer for the answer.
const lookFor = 2 * time.Second

// copies finds what was put aside.
type copies struct {
	lstat func(path string) (fs.FileInfo, error)
	turn  chan struct{} // one listing looks at a time: what hangs holds one goroutine, however often it is asked
}

func newCopies() copies { return copies{lstat: os.Lstat, turn: make(chan struct{}, 1)} }

// Conflicts lists what was put aside on this node, oldest first, most entries at most. Where it cannot be looked for
// now, because a file system hangs, Kept is where it was put.
func (s *Store) Conflicts(most int) []Conflict {
	s.mu.Lock()
	list := slices.SortedFunc(maps.Values(s.conflict), func(a, b Conflict) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Slot.String(), b.Slot.String()), cmp.Compare(a.Path, b.Path))
	})
	s.mu.Unlock()
	list = list[:min(len(list), most)]
	places := make([][]string, 0, len(list))
	for _, c := range list {
		places = append(places, s.copyPaths(c))
	}
	s.copies.findWithin(lookFor, places, func(i int, path string) { list[i].Kept = path })
	return list
}

// findWithin tells found the first copy of each list of paths. It ends after some time, with what was found until then.
func (c *copies) findWithin(within time.Duration, lists [][]string, found func(i int, path string)) {
	if len(lists) == 0 {
		return
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-late.C:
		return
	}
	type place struct {
		list int
		path string
	}
	places := make(chan place, len(lists)) // never blocks: who is late is not waited for
	go func() {                            // ends when the disk answers
		defer func() { <-c.turn }()
		defer close(places)
		for i, paths := range lists {
			if at := c.find(paths); len(at) > 0 {
				places <- place{i, at[0]}
			}
		}
	}()
	for {
		select {
		case p, more := <-places:
			if !more {
				return
			}
			found(p.list, p.path)
		case <-late.C:
			return
		}
	}
}

// copyPaths lists where what was put aside may be: the slot may have had another area then, the state directory another
// path.
func (s *Store) copyPaths(c Conflict) []string {
	dir := ""
	if st := s.findSlot(c.Slot); st != nil {
		dir = st.Dir
	}
	return append(apply.AsidePaths(s.cfg.StateDir, c.Slot, dir, c.ID), c.Kept)
}

// findCopies lists where what was put aside is. Two are there after a crash of bringHome. Listing, restoring and
// discarding all ask here. A file that two paths lead to is listed once, in an area if it is in one.
func (s *Store) findCopies(c Conflict) []string { return s.copies.find(s.copyPaths(c)) }

func (c *copies) find(paths []string) (at []string) {
	var files []fs.FileInfo
	for _, path := range paths {
		file, err := c.lstat(path)
		same := func(other fs.FileInfo) bool { return os.SameFile(file, other) }
		if slotfs.Gone(err) || err == nil && slices.ContainsFunc(files, same) {
			continue
		}
		at = append(at, path)
		if err == nil {
			files = append(files, file)
		}
	}
	return at
}

package tree

import "fmt"

// Loss is an entry of ours that a merge gave up because the other side had changed the same path.
type Loss struct {
	Path  string
	Entry Entry
}

// Merge combines what ours and theirs have done to a directory since base. Where both have changed a path in different
// ways, theirs wins and ours is a loss, but a deletion loses against any change. New objects go into put.
func Merge(o Objects, put Memory, base, ours, theirs Hash) (Hash, []Loss, error) {
	m := &merger{objects: Both{put, o}, put: put}
	h, _, err := m.mergeDir("", 0, base, ours, theirs)
	return h, m.losses, err
}

type merger struct {
	objects Objects
	put     Memory
	losses  []Loss
}

// mergeDir merges directories, and tells how many entries the result has.
func (m *merger) mergeDir(prefix string, depth int, base, ours, theirs Hash) (Hash, int, error) {
	if depth > MaxDepth {
		return Hash{}, 0, fmt.Errorf("%w: %d directories deep at %q", ErrTooLarge, depth, prefix)
	}
	var out []Entry
	err := visitPairs(m.objects, []Hash{base, ours, theirs}, func(name string, e []*Entry) error {
		merged, err := m.mergeEntry(prefix+name, depth, e[0], e[1], e[2])
		if err == nil && merged != nil {
			out = append(out, *merged)
		}
		return err
	})
	if err != nil {
		return Hash{}, 0, err
	}
	h, err := m.put.PutDir(out)
	return h, len(out), err
}

// mergeEntry decides about one path.
func (m *merger) mergeEntry(path string, depth int, base, ours, theirs *Entry) (*Entry, error) {
	switch {
	case ours.Equal(theirs), ours.Equal(base):
		return theirs, nil
	case theirs.Equal(base):
		return ours, nil
	case bothDirs(ours, theirs):
		return m.mergeSubdir(path, depth, base, ours, theirs)
	case ours == nil && bothDirs(base, theirs), theirs == nil && bothDirs(base, ours):
		return m.mergeRemoved(path, depth, base, ours, theirs)
	case ours == nil:
		return theirs, nil
	case theirs == nil:
		return ours, nil
	case ours.Type == File && theirs.Type == File:
		return m.mergeFiles(path, base, ours, theirs), nil
	}
	return theirs, m.noteLoss(path, base, ours)
}

func (m *merger) mergeSubdir(path string, depth int, base, ours, theirs *Entry) (*Entry, error) {
	h, _, err := m.mergeDir(path+"/", depth+1, dirObject(base), ours.Object, theirs.Object)
	e := *theirs
	e.Object, e.Mode = h, mergeMode(base, ours, theirs)
	return &e, err
}

// mergeRemoved merges a directory that one side has removed and the other has changed: what was changed in it stays.
func (m *merger) mergeRemoved(path string, depth int, base, ours, theirs *Entry) (*Entry, error) {
	h, n, err := m.mergeDir(path+"/", depth+1, base.Object, dirObject(ours), dirObject(theirs))
	if err != nil || n == 0 {
		return nil, err
	}
	e := *base
	if ours != nil {
		e = *ours
	} else {
		e = *theirs
	}
	e.Object = h
	return &e, nil
}

func (m *merger) mergeFiles(path string, base, ours, theirs *Entry) *Entry {
	e := *theirs
	e.Mode = mergeMode(base, ours, theirs)
	switch {
	case ours.Same(theirs), base != nil && ours.Same(base):
	case base != nil && theirs.Same(base):
		e.Chunks = ours.Chunks
	default:
		m.losses = append(m.losses, Loss{path, *ours})
	}
	return &e
}

// mergeMode takes the permissions that were changed; theirs when both were.
func mergeMode(base, ours, theirs *Entry) uint16 {
	if base != nil && theirs.Mode == base.Mode {
		return ours.Mode
	}
	return theirs.Mode
}

// noteLoss notes what we have at a path, or below it, that base does not have.
func (m *merger) noteLoss(path string, base, ours *Entry) error {
	if ours.Type != Dir {
		m.losses = append(m.losses, Loss{path, *ours})
		return nil
	}
	return Diff(m.objects, dirObject(base), ours.Object, func(c Change) error {
		if c.To != nil && c.To.Type != Dir {
			m.losses = append(m.losses, Loss{path + "/" + c.Path, *c.To})
		}
		return nil
	})
}

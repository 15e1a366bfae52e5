package tree

import "fmt"

// Advance returns the base of a merge with theirs when base has been followed here by proposed, and it is not known
// whether theirs came from that: proposed where theirs is the same, base elsewhere. Later edits here are then edits of
// what theirs has, and do not conflict with it. New objects go into put.
func Advance(o Objects, put Memory, base, proposed, theirs Hash) (Hash, error) {
	a := &advancer{objects: Both{put, o}, put: put}
	return a.advanceDir("", 0, base, proposed, theirs)
}

type advancer struct {
	objects Objects
	put     Memory
}

func (a *advancer) advanceDir(prefix string, depth int, base, proposed, theirs Hash) (Hash, error) {
	switch {
	case depth > MaxDepth:
		return Hash{}, fmt.Errorf("%w: %d directories deep at %q", ErrTooLarge, depth, prefix)
	case proposed == theirs, base == proposed:
		return proposed, nil
	}
	var out []Entry
	err := visitPairs(a.objects, []Hash{base, proposed, theirs}, func(name string, e []*Entry) error {
		next, err := a.advanceEntry(prefix+name, depth, e[0], e[1], e[2])
		if err == nil && next != nil {
			out = append(out, *next)
		}
		return err
	})
	if err != nil {
		return Hash{}, err
	}
	return a.put.PutDir(out)
}

// advanceEntry decides about one path.
func (a *advancer) advanceEntry(path string, depth int, base, proposed, theirs *Entry) (*Entry, error) {
	switch {
	case proposed.Equal(theirs):
		return proposed, nil
	case proposed.Equal(base):
		return base, nil
	case bothDirs(proposed, theirs), proposed == nil && bothDirs(base, theirs), theirs == nil && bothDirs(base, proposed):
		return a.advanceSubdir(path, depth, base, proposed, theirs)
	case proposed.is(File) && theirs.is(File) && proposed.Same(theirs): // only its permissions were changed since
		return proposed, nil
	}
	return base, nil
}

// advanceSubdir is one that is there on at least two of the three sides.
func (a *advancer) advanceSubdir(path string, depth int, base, proposed, theirs *Entry) (*Entry, error) {
	h, err := a.advanceDir(path+"/", depth+1, dirObject(base), dirObject(proposed), dirObject(theirs))
	e := *firstDir(base, proposed)
	if bothDirs(proposed, theirs) && proposed.Mode == theirs.Mode {
		e.Mode = proposed.Mode
	}
	e.Object = h
	return &e, err
}

func firstDir(a, b *Entry) *Entry {
	if a.is(Dir) {
		return a
	}
	return b
}

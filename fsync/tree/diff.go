package tree

import "fmt"

// Change is a path that is not the same in two trees. From or To is nil when it is in one of them only. When a
// directory comes or goes, what it contains has changes of its own.
type Change struct {
	Path     string
	From, To *Entry
}

// What names the change.
func (c Change) What() string {
	switch {
	case c.From == nil:
		return "added"
	case c.To == nil:
		return "removed"
	case c.From.Type != c.To.Type:
		return "type"
	case c.From.Same(c.To), c.From.Type == Dir:
		return "mode"
	}
	return "changed"
}

// Diff calls fn for what differs between two directories, parents first. Equal directories are not read.
func Diff(o Objects, from, to Hash, fn func(Change) error) error {
	return diffDirs(o, from, to, "", 0, fn)
}

func diffDirs(o Objects, from, to Hash, prefix string, depth int, fn func(Change) error) error {
	if from == to {
		return nil
	}
	if depth > MaxDepth {
		return fmt.Errorf("%w: %d directories deep at %q", ErrTooLarge, depth, prefix)
	}
	return visitPairs(o, []Hash{from, to}, func(name string, e []*Entry) error {
		a, b := e[0], e[1]
		if a.Equal(b) {
			return nil
		}
		path := prefix + name
		if !bothDirs(a, b) || a.Mode != b.Mode {
			if err := fn(Change{path, a, b}); err != nil {
				return err
			}
		}
		return diffDirs(o, dirObject(a), dirObject(b), path+"/", depth+1, fn)
	})
}

func bothDirs(a, b *Entry) bool { return a.is(Dir) && b.is(Dir) }

func (e *Entry) is(t Type) bool { return e != nil && e.Type == t }

// dirObject is the object of a directory, and the zero hash of anything else.
func dirObject(e *Entry) Hash {
	if e.is(Dir) {
		return e.Object
	}
	return Hash{}
}

// visitPairs calls fn for each name in any of the directories, in order, with the entries they have under it.
func visitPairs(o Objects, dirs []Hash, fn func(name string, e []*Entry) error) error {
	lists := make([][]Entry, len(dirs))
	for i, d := range dirs {
		var err error
		if lists[i], err = ReadDir(o, d); err != nil {
			return err
		}
	}
	for {
		name, found := "", false
		for _, l := range lists {
			if len(l) > 0 && (!found || l[0].Name < name) {
				name, found = l[0].Name, true
			}
		}
		if !found {
			return nil
		}
		row := make([]*Entry, len(lists))
		for i, l := range lists {
			if len(l) > 0 && l[0].Name == name {
				row[i], lists[i] = &l[0], l[1:]
			}
		}
		if err := fn(name, row); err != nil {
			return err
		}
	}
}

package tree

import "fmt"

// MaxSlot bounds the entries of a slot, at all depths.
const MaxSlot = 1_000_000

// Extents is how many entries there are below directories, each counted as often as it has a path: a few objects that
// name each other twice make more paths than any disk holds. Counts are remembered, up to a bound.
type Extents struct{ known map[Hash]int }

// maxKnown bounds what is remembered; all directories of a tree fit.
const maxKnown = 400_000

// Slots counts each slot of a root, and refuses one that has more than MaxSlot entries.
func (x *Extents) Slots(o Objects, root Hash) error {
	if len(x.known) > maxKnown || x.known == nil {
		x.known = map[Hash]int{}
	}
	slots, err := ReadRoot(o, root)
	if err != nil {
		return err
	}
	for slot, dir := range slots {
		if _, err := x.countBelow(o, dir, 0); err != nil {
			return fmt.Errorf("%s: %w", slot, err)
		}
	}
	return nil
}

func (x *Extents) countBelow(o Objects, dir Hash, depth int) (int, error) {
	if n, ok := x.known[dir]; ok {
		return n, nil
	}
	if depth > MaxDepth {
		return 0, fmt.Errorf("%w: %d directories deep", ErrTooLarge, depth)
	}
	entries, err := ReadDir(o, dir)
	if err != nil {
		return 0, err
	}
	n := len(entries)
	for i := range entries {
		if entries[i].Type != Dir {
			continue
		}
		more, err := x.countBelow(o, entries[i].Object, depth+1)
		if err != nil {
			return 0, err
		}
		if n += more; n > MaxSlot {
			break
		}
	}
	if n > MaxSlot {
		return 0, fmt.Errorf("%w: more than %d files", ErrTooLarge, MaxSlot)
	}
	x.known[dir] = n
	return n, nil
}

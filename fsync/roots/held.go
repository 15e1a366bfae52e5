package roots

import (
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/tree"
)

// minRemoved is how many files of a slot may always be removed.
const minRemoved = 10

// removesTooMuch says whether a slot loses more of its files than it may without a word from an operator.
func (s *Store) removesTooMuch(before, removed int) bool {
	return removed > minRemoved && removed*100 > before*s.cfg.MaxDeletePercent
}

// losesTooMuch says whether a slot would lose too much between two trees, of which the second lacks so many files of
// the first. A file that only has another name is not lost: renaming a directory, whatever is in it, does not need a
// word from an operator.
func (s *Store) losesTooMuch(from, to Hash, removed int) (bool, error) {
	files, _, err := tree.Count(s, from)
	if err != nil || !s.removesTooMuch(files, removed) {
		return false, err
	}
	moved, err := s.moved(from, to)
	return err == nil && s.removesTooMuch(files, removed-moved), err
}

// moved counts the files and symlinks of a tree that are gone in another one while something equal has come elsewhere;
// each that has come stands for one.
func (s *Store) moved(from, to Hash) (n int, err error) {
	gone, come := map[Hash]int{}, map[Hash]int{}
	err = tree.Diff(s, from, to, func(c tree.Change) error {
		switch {
		case c.To == nil && c.From.Type != tree.Dir:
			gone[c.From.Identity()]++
		case c.To != nil && c.To.Type != tree.Dir && (c.From == nil || c.From.Type == tree.Dir):
			come[c.To.Identity()]++
		}
		return nil
	})
	for h, many := range gone {
		n += min(many, come[h])
	}
	return n, err
}

// spell is a time in which files of a slot are removed bit by bit. A removal that takes a while, rm -r of a large
// directory say, is seen as many small ones, and none of them alone would be held.
type spell struct {
	began time.Time
	from  Hash // the slot before the first of them
	to    Hash // and after the last; something else in the base means that others have decided about it since
}

// spellLasts is how long removals count as one.
const spellLasts = 10 * time.Minute

// goesOn says whether a slot that looks like before is in a spell of removals. One of which something is held lasts
// until an operator has said what becomes of it: or else the next edit would take the rest along.
func (s *Store) goesOn(st *slotState, before Hash) bool {
	return st.spell.to == before && (time.Since(st.spell.began) < spellLasts || s.holds())
}

// holds says whether something of this node is held that would come after the base.
func (s *Store) holds() bool {
	for _, r := range s.cfg.Log.Revisions() {
		if r.State == StateHeld && r.Author == s.cfg.Self && r.Parent == s.base.Number {
			return true
		}
	}
	return false
}

// removesBitByBit says whether a slot that looked like before has lost too much since a spell of removals began.
func (s *Store) removesBitByBit(st *slotState, before Hash) (bool, error) {
	if !s.goesOn(st, before) {
		return false, nil
	}
	var tooMuch bool
	e := edits{objects: tree.Memory{}}
	err := e.compare(s, st.Name, st.spell.from, st.dir)
	if err == nil {
		tooMuch, err = s.losesTooMuch(st.spell.from, st.dir, e.stats.Removed)
	}
	if errors.Is(err, tree.ErrNoObject) { // a spell that cannot be judged ends, and another one begins
		st.spell = spell{}
		return false, nil
	}
	return tooMuch, err
}

// noteSpells notes a revision of this node that has been taken: spells of removals begin, continue, or end with
// an operator's word.
func (s *Store) noteSpells(e *edits, confirmed bool) {
	for _, st := range e.slots {
		before, changed := e.before[st.Name]
		switch {
		case confirmed:
			st.spell = spell{}
		case !changed:
		case s.goesOn(st, before):
			st.spell.to = st.dir
		case e.lost[st.Name]:
			st.spell = spell{began: time.Now(), from: before, to: st.dir}
		}
	}
}

// heldAs returns the held revision that has a tree.
func (s *Store) heldAs(root Hash) *Revision {
	for _, r := range s.cfg.Log.Revisions() {
		if r.State == StateHeld && r.Root == root {
			return &r
		}
	}
	return nil
}

// dropped returns a revision of this node that an operator has dropped while what it wanted is still on this disk: the
// deletions are to be undone here. One that gave way to a later one of this node does not count.
func (s *Store) dropped() *Revision {
	var last Revision
	for _, r := range s.cfg.Log.Revisions() {
		if r.Author == s.cfg.Self && r.Number > last.Number {
			last = r
		}
	}
	if last.State == StateDropped && last.Number > s.base.Restored && last.Root == s.liveRoot {
		return &last
	}
	return nil
}

// loseDropped notes what a dropped revision edited beside what it deleted: the slot becomes as the cluster has it, and
// that is put aside.
func (s *Store) loseDropped(base, live Hash, number uint64, losses map[string]string) error {
	return tree.Diff(s, base, live, func(c tree.Change) error {
		if c.To != nil && c.To.Type != tree.Dir && (c.From == nil || !c.From.Same(c.To)) {
			losses[c.Path] = fmt.Sprintf("edited here in revision %d, which was dropped", number)
		}
		return nil
	})
}

// isDropped says whether a slot looks as a dropped revision wanted it to.
func (s *Store) isDropped(st *slotState, r *Revision) bool {
	root, err := tree.ReadRoot(s, r.Root)
	return err == nil && root[st.Name] == st.dir
}

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

// losesTooMuch says whether a slot would lose too much between two trees. A file that only has another name is not
// lost: renaming a directory, whatever is in it, does not need a word from an operator.
func (s *Store) losesTooMuch(from, to Hash) (bool, error) {
	lost, err := s.countLost(from, to)
	if err != nil || lost <= minRemoved {
		return false, err
	}
	files, _, err := tree.Count(s, from)
	return err == nil && s.removesTooMuch(files, lost), err
}

// countLost counts the files and symlinks of a tree of which another one has nothing, neither there nor elsewhere; each
// that has come elsewhere stands for one.
func (s *Store) countLost(from, to Hash) (n int, err error) {
	gone, come := map[Hash]int{}, map[Hash]int{}
	err = tree.Diff(s, from, to, func(c tree.Change) error {
		switch {
		case isLost(c):
			gone[c.From.Identity()]++
		case c.To != nil && c.To.Type != tree.Dir && (c.From == nil || c.From.Type == tree.Dir):
			come[c.To.Identity()]++
		}
		return nil
	})
	for h, many := range gone {
		n += max(0, many-come[h])
	}
	return n, err
}

// isLost says whether a change takes a file or a symlink away, or leaves nothing of what was in a file, as programs do
// that write into files on a full disk.
func isLost(c tree.Change) bool {
	if c.To == nil {
		return c.From.Type != tree.Dir
	}
	return c.From != nil && c.From.Type == tree.File && c.To.Type == tree.File && c.From.Size() > 0 && c.To.Size() == 0
}

// spell is a time in which files of a slot are removed bit by bit. A removal that takes a while, rm -r of a large
// directory say, is seen as many small ones, and none of them alone would be held.
type spell struct {
	Began time.Time
	From  Hash // the slot before the first of them
	To    Hash // and after the last; something else in the base means that others have decided about it since
	// Adopted says that To is a revision of which this disk has lost something that no other node has, and From the slot
	// before it: only what was in that can be kept.
	Adopted bool
}

// spellLasts is how long removals count as one.
const spellLasts = 10 * time.Minute

// goesOn says whether a slot that looks like before is in a spell of removals. One of which something is held lasts
// until an operator has said what becomes of it: or else the next edit would take the rest along.
func (s *Store) goesOn(st *slotState, before Hash) bool {
	return st.spell.To == before && (st.spell.Adopted || time.Since(st.spell.Began) < spellLasts || s.holds())
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

// removesTooMuchOf says whether a slot that looked like before loses too much, at once or since a spell of removals
// began.
func (s *Store) removesTooMuchOf(st *slotState, before Hash) (bool, error) {
	if !s.goesOn(st, before) {
		return s.losesTooMuch(before, st.dir)
	}
	tooMuch, err := s.losesTooMuch(st.spell.From, st.dir)
	if errors.Is(err, tree.ErrNoObject) { // a spell that cannot be judged ends, and another one begins
		st.spell = spell{}
		return s.losesTooMuch(before, st.dir)
	}
	if err != nil || tooMuch || st.spell.Adopted {
		return tooMuch, err
	}
	return s.losesTooMuch(before, st.dir)
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
			st.spell.To, st.spell.Adopted = st.dir, false
		case e.lost[st.Name]:
			st.spell = spell{Began: time.Now(), From: before, To: st.dir}
		}
	}
}

// spells are those of all slots, to be written down: what is held must not pass with the first edit after a restart.
func (s *Store) spells() map[SlotName]spell {
	all := map[SlotName]spell{}
	for _, st := range s.slots {
		if st.spell != (spell{}) {
			all[st.Name] = st.spell
		}
	}
	return all
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

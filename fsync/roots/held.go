package roots

import (
	"errors"
	"time"

	"saltclusterd/fsync/tree"
)

// minRemoved is how many files of a slot may always be removed.
const minRemoved = 10

// removesTooMuch says whether a slot loses more of its files than it may without a word from an operator.
func (s *Store) removesTooMuch(before, removed int) bool {
	return removed > minRemoved && removed*100 > before*s.cfg.MaxDeletePercent
}

// spell is a time in which files of a slot are removed bit by bit. A removal that takes a while, rm -r of a large directory say, is
// seen as many small ones, and none of them alone would be held.
type spell struct {
	began time.Time
	from  Hash // the slot before the first of them
	to    Hash // and after the last; something else in the base means that others have decided about it since
}

// spellLasts is how long removals count as one.
const spellLasts = 10 * time.Minute

// goesOn says whether a slot that looks like before is in a spell of removals. One of which something is held lasts until an operator
// has said what becomes of it: or else the next edit would take the rest along.
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
	files, _, err := tree.Count(s, st.spell.from)
	e := edits{objects: tree.Memory{}}
	if err == nil {
		err = e.compare(s, st.Name, st.spell.from, st.dir)
	}
	if errors.Is(err, tree.ErrNoObject) { // a spell that cannot be judged ends, and another one begins
		st.spell = spell{}
		return false, nil
	}
	return s.removesTooMuch(files, e.stats.Removed), err
}

// noteSpells notes a revision of this node that has been taken: spells of removals begin, go on, or end with an operator's word.
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

// isDropped says whether a slot looks as a dropped revision wanted it to.
func (s *Store) isDropped(st *slotState, r *Revision) bool {
	root, err := tree.ReadRoot(s, r.Root)
	return err == nil && root[st.Name] == st.dir
}

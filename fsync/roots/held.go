package roots

import (
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

// removedSince counts what a slot has lost since its spell began, the files it had then, and whether there is a spell.
func (s *Store) removedSince(st *slotState, before Hash) (files, removed int, ok bool) {
	if st.spell.to != before || time.Since(st.spell.began) >= spellLasts {
		return 0, 0, false
	}
	files, _, err := tree.Count(s, st.spell.from)
	if err != nil { // not kept any more
		return 0, 0, false
	}
	e := edits{objects: tree.Memory{}}
	if err := e.compare(s, st.Name, st.spell.from, st.dir); err != nil {
		return 0, 0, false
	}
	return files, e.stats.Removed, true
}

// goesOn notes a revision of this node that has been taken: a spell of removals begins, goes on, or ends with an operator's word.
func (s *Store) goesOn(e *edits, confirmed bool) {
	for _, st := range e.slots {
		before, changed := e.before[st.Name]
		switch {
		case confirmed:
			st.spell = spell{}
		case !changed:
		case st.spell.to == before && time.Since(st.spell.began) < spellLasts:
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

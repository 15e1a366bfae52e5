package roots

import (
	"saltclusterd/fsync/tree"
)

// minRemoved is how many files of a slot may always be removed.
const minRemoved = 10

// removesTooMuch says whether a slot loses more of its files than it may without a word from an operator.
func (s *Store) removesTooMuch(before, removed int) bool {
	return removed > minRemoved && removed*100 > before*s.cfg.MaxDeletePercent
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

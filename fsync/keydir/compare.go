package keydir

import (
	"saltclusterd/consensus/state"
)

// match is what has to be done so that files and store have the same of a subject.
type match uint8

const (
	inStep match = iota
	push         // files to store
	pull         // store to files
	demote       // the file is left over: pending, on both sides
	later        // not to be decided yet
)

// compare is everything that depends on.
type compare struct {
	file       finding
	held       held
	lastSynced entry
	strange    bool // the store is not the one that lastSynced is about
	founder    bool // what is found is taken as it is
	blank      bool // there was nothing in the store at first
	known      bool // consensus has heard of it
}

// decideMatch: whichever of the two differs from what they were agrees to the other; of two edits the later one wins. A
// strange store has no say about what files or consensus know, except where everything begins: there it is what the
// master goes by.
func (c compare) decideMatch() match {
	f, h := c.file.entry, c.held.entry
	switch {
	case c.file.garbage, c.file.twice, c.file.temp:
		return later // no state to copy; the machine deals with it
	case f == h && !c.held.garbage:
		return inStep
	case c.held.garbage:
		if f == (entry{}) {
			return inStep // no key on either side
		}
		return push
	case c.strange && (f == entry{}):
		if c.known {
			return push
		}
		return pull
	case c.strange && c.founder && h != entry{}:
		return pull
	case c.strange && c.founder && !c.blank && f.State == state.KeyAccepted:
		return demote // salt-key on this master has not shown it, and cannot have deleted it
	case c.strange:
		return push
	case h == c.lastSynced:
		return push
	case f == c.lastSynced:
		return pull
	case h != entry{} && f != entry{} && c.held.raw.MTime.After(c.file.modified):
		return pull
	}
	return push
}

// bothDiffer says that one of the two is about to be lost.
func (c compare) bothDiffer() bool {
	f, h := c.file.entry, c.held.entry
	return f != entry{} && h != entry{} && f.Print != h.Print && (c.strange || f != c.lastSynced && h != c.lastSynced)
}

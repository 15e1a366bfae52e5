package keydir

import (
	"time"

	"saltclusterd/consensus/state"
)

// entry is a key as it stands on disk or in consensus. The zero entry is none.
type entry struct {
	State state.KeyState
	Print keyPrint
}

// isDecided says that an operator has accepted or rejected the key.
func (e entry) isDecided() bool { return e.State == state.KeyAccepted || e.State == state.KeyRejected }

// based is what disk and consensus last agreed on about one id. With the zero entry it is a deletion, remembered until
// base.Seen has passed its revision.
type based struct {
	entry
	Rev uint64
}

// staleness says why nothing on disk counts as an edit.
type staleness string

const (
	fresh   staleness = ""
	joining staleness = "joining" // consensus wins; what it does not know becomes pending
	found   staleness = "found"   // as joining, but what consensus does not know is taken as it is
)

// base is the memory of a machine.
type base struct {
	UUID   string // cluster the revisions belong to
	Seen   uint64 // all decisions up to this revision are on disk
	Stamp  string // content of the marker beside the directories
	Prev   string // its content before the last change
	Stale  staleness
	Dirs   map[string]string // the directories by name, as dirid tells them apart; none in files of older versions
	Keys   map[string]based
	Denied map[string]based
	Store  *storeFile        // as it was saved last; nil: the master had no store
	Held   map[string]uint64 // by minion, revisions of accepted keys that were lost on disk and restored

	Losses map[string]time.Time // by minion: when its key was lost; those of the last lossSpan, of all nodes
	Fleets []fleetSize          // of lossSpan, at times of losses, the oldest first
}

// fleetSize is how many accepted keys there were before a loss.
type fleetSize struct {
	At   time.Time `json:"at"`
	Keys int       `json:"keys"`
}

func newBase(s staleness) *base {
	return &base{Stale: s, Dirs: map[string]string{}, Keys: map[string]based{}, Denied: map[string]based{},
		Held: map[string]uint64{}, Losses: map[string]time.Time{}}
}

func (b *base) baseOf(s subject) (based, bool) {
	m := b.Keys
	if s.denied {
		m = b.Denied
	}
	v, ok := m[s.id]
	return v, ok
}

// setBase notes that disk and consensus are the same about s.
func (b *base) setBase(s subject, v based) {
	if s.denied {
		if v.entry == (entry{}) {
			delete(b.Denied, s.id)
		} else {
			b.Denied[s.id] = v
		}
		return
	}
	b.Keys[s.id] = v
}

// highestRev is the greatest revision the base speaks of.
func (b *base) highestRev() uint64 {
	h := b.Seen
	for _, v := range b.Keys {
		h = max(h, v.Rev)
	}
	for _, v := range b.Denied {
		h = max(h, v.Rev)
	}
	return h
}

// advanceTo notes that all decisions up to rev are on disk; deletions up to there need no entry of their own any more.
func (b *base) advanceTo(rev uint64) {
	if rev <= b.Seen {
		return
	}
	b.Seen = rev
	for id, v := range b.Keys {
		if v.entry == (entry{}) && v.Rev <= rev {
			delete(b.Keys, id)
		}
	}
}

// subject is what a decision is about: the key of an id, or its denied key.
type subject struct {
	id     string
	denied bool
}

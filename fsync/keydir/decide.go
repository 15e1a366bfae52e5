package keydir

import (
	"time"

	"saltclusterd/consensus/state"
)

// verdict is what is to be done about a subject.
type verdict uint8

const (
	leave   verdict = iota // disk, base and consensus agree
	adopt                  // disk and consensus agree, base learns it
	write                  // consensus goes to disk
	propose                // disk goes to consensus
	unclear                // disk holds something other than a key: perhaps later
)

// keyState is everything a decision about one subject depends on. The subject is a key or a denied key; for the latter
// State is KeyPending everywhere, because it has no state.
type keyState struct {
	disk     entry
	garbage  bool      // disk holds something other than a whole key
	twice    bool      // disk has it in several directories
	modified time.Time // of the file on disk, by the cluster's clock

	base    based
	hasBase bool

	cons    entry
	rev     uint64    // precondition for a proposal
	deleted time.Time // when consensus deleted it; zero when it did not
	decided time.Time // when consensus decided what it has; zero when it has none
	again   bool      // consensus has deleted it, and has it again
	denied  keyPrint  // of the key that lies denied beside it
	current bool      // base is at consensus' revision
	first   bool      // consensus has not deleted it since base was told of anything

	stale staleness
	known bool // consensus has heard of it: it lives or was deleted
}

// step is a decision.
type step struct {
	verdict   verdict
	want      entry // propose: what consensus shall have; write: what it has
	overruled bool  // write: keep a copy of what is on disk
	deny      bool  // write: record what is on disk as a denied key
	why       string
}

// clockSlack is how much older than a deletion a file must be to be a left-over: what is known of clocks is not exact.
const clockSlack = 5 * time.Second

// decideStep applies the rules of the package comment.
func decideStep(k keyState) step {
	switch {
	case k.stale != fresh:
		return k.decideStale()
	case k.garbage:
		return k.decideGarbage()
	}
	edited := k.disk != k.base.entry
	switch {
	case !edited && k.current:
		if k.twice {
			return step{verdict: write, want: k.cons, why: "in several directories"}
		}
		return step{}
	case k.disk == k.cons && !k.current && !k.twice:
		return step{verdict: adopt, want: k.cons}
	case !edited, k.disk == k.cons && !k.current: // the latter in several directories
		return step{verdict: write, want: k.cons}
	case k.current && k.isLeftover():
		return step{verdict: write, want: k.cons, overruled: true, why: "older than its deletion"}
	case k.current && k.isOverdue():
		return step{verdict: write, want: k.cons, overruled: true, why: "older than the decision about the present key"}
	case k.current:
		return step{verdict: propose, want: k.disk}
	case k.isAdopted() && k.cons.State == state.KeyPending && k.first:
		return step{verdict: propose, want: k.disk}
	case k.isAdopted() && k.disk.State == state.KeyPending:
		return step{verdict: write, want: k.cons}
	}
	return k.overruleEdit("changed elsewhere meanwhile")
}

// isAdopted says that disk and consensus came to the same public key without base: the node that proposed it ended
// before that was noted, or its minion went to two masters. Pending is not a decision, so a decision on the other side
// does not conflict with it.
//
// A decision found on disk counts only in the first life of the key. A deleted key may lie on disk as it was before its
// deletion, written by a node that ended before it noted so, while its minion has come again: there consensus wins, as
// it does wherever base had the key.
func (k keyState) isAdopted() bool {
	return !k.hasBase && k.disk.Print != "" && k.disk.Print == k.cons.Print
}

// overruleEdit lets consensus win over an edit. A new public key that loses against another one is denied, as a stock
// master does with the second key it hears for an id.
func (k keyState) overruleEdit(why string) step {
	s := step{verdict: write, want: k.cons, overruled: k.disk != entry{}, why: why}
	s.deny = k.disk.Print != "" && k.cons.Print != "" &&
		k.disk.Print != k.cons.Print && k.disk.Print != k.base.Print
	return s
}

// isLeftover says that a file appeared for a deleted key which is older than the deletion: it comes from a backup.
func (k keyState) isLeftover() bool {
	return k.disk != entry{} && k.base.entry == entry{} && !k.deleted.IsZero() &&
		k.modified.Before(k.deleted.Add(-clockSlack))
}

// isOverdue says that a file appeared in place of another key, or beside the same one that came again after its
// deletion, which is older than the decision about that one: it comes from a backup as well. A key that was denied, and
// is accepted now, keeps the time at which it came.
func (k keyState) isOverdue() bool {
	if k.disk.Print == "" || k.cons.Print == "" || !k.modified.Before(k.decided.Add(-clockSlack)) {
		return false
	}
	if k.disk.Print == k.cons.Print {
		return k.twice && k.again && k.disk.State == state.KeyAccepted && k.cons.State == state.KeyPending
	}
	return k.disk.Print != k.denied
}

// decideGarbage: consensus heals what it knows; anything else is left for the operator to look at.
func (k keyState) decideGarbage() step {
	if !k.current {
		return step{verdict: write, want: k.cons, overruled: true, why: "no key in the file"}
	}
	return step{verdict: unclear, want: k.cons}
}

// decideStale is for a directory which the base does not describe.
func (k keyState) decideStale() step {
	none := entry{}
	agreed := k.hasBase && k.current && k.base.entry == k.cons
	switch {
	case k.disk == k.cons && !k.garbage && k.twice:
		return step{verdict: write, want: k.cons, why: "in several directories"}
	case k.disk == k.cons && !k.garbage && agreed, k.disk == none && !k.known && !k.garbage:
		return step{}
	case k.disk == k.cons && !k.garbage:
		return step{verdict: adopt, want: k.cons}
	case k.stale == found && !k.hasBase && !k.garbage && k.cons.State == state.KeyPending && k.disk.isDecided():
		// A minion was faster: it came to a node that had joined before the founder's keys were all known.
		return step{verdict: propose, want: k.disk}
	case k.known:
		return step{verdict: write, want: k.cons, overruled: k.disk != none || k.garbage, why: "the cluster has it already"}
	case k.garbage:
		return step{verdict: unclear, want: k.cons}
	case k.stale == found:
		return step{verdict: propose, want: k.disk}
	}
	want := k.disk
	if want.State == state.KeyAccepted {
		want.State = state.KeyPending // who accepted it did not know this cluster
	}
	return step{verdict: propose, want: want, why: "this directory is new to the cluster"}
}

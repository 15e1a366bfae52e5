package state

import (
	"errors"
	"slices"

	"saltclusterd/gossip/node"
)

// RootsState says whether a revision of the trees is or was in force.
type RootsState string

// The states of a revision of the trees.
const (
	RootsActive  RootsState = ""        // it is in force, or was
	RootsHeld    RootsState = "held"    // it waits for a confirmation
	RootsDropped RootsState = "dropped" // it was refused and never in force
)

// RootsStats describes a revision for the operator. It decides nothing.
type RootsStats struct {
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	Changed int64 `json:"changed,omitempty"` // files and links that differ from the parent or are new
	Removed int64 `json:"removed,omitempty"`
}

// RootsRevision is one revision of the file and pillar trees. Its content moves
// between the nodes by hash; only the name of the whole stands here.
type RootsRevision struct {
	Number uint64     `json:"number"` // counts from 1
	Parent uint64     `json:"parent,omitempty"`
	Root   string     `json:"root"`
	Kind   string     `json:"kind,omitempty"`
	State  RootsState `json:"state,omitempty"`
	Author node.ID    `json:"author"`
	Stats  RootsStats `json:"stats"`
	Note   string     `json:"note,omitempty"`
	Audit
}

// rootsData is what is agreed about the trees. The list is replaced, never
// written; the oldest revision comes first.
type rootsData struct {
	last uint64 // number given last
	head uint64 // number in force, zero: none
	list []RootsRevision
}

func (t rootsData) currentRevision() (RootsRevision, bool) {
	if t.head == 0 {
		return RootsRevision{}, false
	}
	for _, r := range slices.Backward(t.list) {
		if r.Number == t.head {
			return r, true
		}
	}
	return RootsRevision{}, false
}

// RootsHead is the revision of the trees that is in force.
func (v View) RootsHead() (RootsRevision, bool) { return v.get().roots.currentRevision() }

// RootsRevisions lists the kept revisions of the trees, oldest first, with
// those on hold and those refused.
func (v View) RootsRevisions() []RootsRevision { return slices.Clone(v.get().roots.list) }

// wireRoots is the snapshot's record of the counters; it comes before the
// revisions, and only when there is one.
type wireRoots struct {
	Last uint64 `json:"last"`
	Head uint64 `json:"head,omitempty"`
}

func (w *snapshotWriter) writeRoots(t rootsData) {
	if t.last == 0 {
		return
	}
	w.writeRecord(recRoots, wireRoots{t.last, t.head})
	for _, r := range t.list {
		w.writeRecord(recRevision, r)
	}
}

func (r *snapshotReader) readRoots(w wireRoots) error {
	if r.d.roots.last != 0 || w.Last == 0 || w.Head > w.Last || w.Last > r.d.rev {
		return errors.New("counters of the trees duplicate or out of order")
	}
	r.d.roots.last, r.d.roots.head = w.Last, w.Head
	return nil
}

func (r *snapshotReader) rootsRevision(v RootsRevision) error {
	t := &r.d.roots
	floor := uint64(0)
	if n := len(t.list); n > 0 {
		floor = t.list[n-1].Number
	}
	switch {
	case v.Number <= floor, v.Number > t.last, v.Parent >= v.Number, len(t.list) >= MaxRoots:
		return errors.New("revisions of the trees out of order or too many")
	case v.State != RootsActive && v.State != RootsHeld && v.State != RootsDropped:
		return errors.New("unknown state of a revision")
	case v.Number == t.head && v.State != RootsActive, v.State == RootsActive && v.Number > t.head:
		return errors.New("the head is not in force, or a later revision is")
	}
	t.list = append(t.list, v)
	return errors.Join(validNode(v.Author), validRoot(v.Root), validText("kind", v.Kind, MaxRootsKind),
		validText("note", v.Note, MaxText), v.Stats.validate(), v.Audit.validate())
}

// isComplete checks what only the whole snapshot can tell.
func (t rootsData) isComplete() bool {
	_, ok := t.currentRevision()
	return ok == (t.head != 0) && countHeld(t.list) <= MaxRootsHeld
}

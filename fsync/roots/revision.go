package roots

import (
	"context"
	"errors"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// Names that users of this package need.
type (
	Hash     = tree.Hash
	SlotName = tree.Slot
)

// Kind says how a revision came about.
type Kind string

// The kinds of revisions.
const (
	KindFirst    Kind = "first"    // of the cluster
	KindEdit     Kind = "edit"     // made on the author's disk
	KindMerge    Kind = "merge"    // local edits and a newer head
	KindRollback Kind = "rollback" // an old tree again
)

// State says whether a revision is in force.
type State string

// The states of revisions. A held one becomes applied (confirmed) or dropped; only applied ones are ever the head.
const (
	StateApplied State = "applied"
	StateHeld    State = "held"
	StateDropped State = "dropped"
)

// Stats tell how a revision differs from its parent.
type Stats struct {
	Files   int   `json:"files"` // in the tree
	Bytes   int64 `json:"bytes"` // of them
	Changed int   `json:"changed"`
	Removed int   `json:"removed"`
}

// Revision is a tree that consensus has ordered.
type Revision struct {
	Number uint64  `json:"number"` // from 1
	Parent uint64  `json:"parent"` // 0: none
	Root   Hash    `json:"root"`
	Author node.ID `json:"author"`
	Time   uint64  `json:"time"` // hybrid clock: milliseconds since 1970 << 16 | counter
	Kind   Kind    `json:"kind"`
	State  State   `json:"state"`
	Stats  Stats   `json:"stats"`
	Note   string  `json:"note,omitempty"`
}

// Proposal is a revision that consensus is asked to order after Parent.
type Proposal struct {
	Parent uint64
	Root   Hash
	Kind   Kind
	Stats  Stats
	Note   string
	// Held says that it removes too much: it becomes a revision with StateHeld that is not the head. A held revision
	// that is there already is dropped for it when it has the same author.
	Held bool
	// Confirmed says that an operator asked for it: it is never held.
	Confirmed bool
}

// What Log.Propose fails with. Implementations wrap them.
var (
	// ErrNotCurrent says that the parent is not the head.
	ErrNotCurrent = errors.New("the parent is not the newest revision")
	// ErrNoQuorum says that the cluster cannot decide now.
	ErrNoQuorum = errors.New("no quorum")
	// ErrUncertain says that it is not known whether the proposal has become a revision, or will. Any other error than
	// this one, ErrNotCurrent and ErrNoQuorum alone is taken for it.
	ErrUncertain = errors.New("it is not known whether it is a revision")
)

// Log is the cluster's order of revisions, as this node knows it.
type Log interface {
	// Head is the newest revision in force (StateApplied). It is cheap.
	Head() (Revision, bool)
	// Ready says whether the log is known as far as a leader had it when this node started; before, no head means nothing.
	Ready() bool
	// Revisions are those that are kept, oldest first, held and dropped ones too.
	Revisions() []Revision
	Propose(ctx context.Context, p Proposal) (Revision, error)
	// Changed returns a channel that gets a value after changes, several at once perhaps.
	Changed(ctx context.Context) <-chan struct{}
}

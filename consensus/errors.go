package consensus

import (
	"errors"
	"fmt"

	"saltclusterd/gossip/node"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrNoLeader means that no leader with a majority was found in time. Unless
	// the error is also ErrUncertain, nothing was changed.
	ErrNoLeader = errors.New("no leader with a majority")
	// ErrBehind means that this node lacks something that the cluster has decided.
	ErrBehind = errors.New("this node does not have the latest decisions of the cluster yet")
	// ErrUncertain means that the outcome of a proposal is not known: it may
	// have been applied, or may still be.
	ErrUncertain = errors.New("it is not known whether the proposal was applied")
	// ErrNotLeader means that this node does not lead; see NotLeaderError.
	ErrNotLeader = errors.New("this node is not the leader")
	// ErrClosed means that the node was closed or never opened.
	ErrClosed = errors.New("consensus is closed")
	// ErrBootstrapped means that this node already belongs to a cluster.
	ErrBootstrapped = errors.New("this node already has a cluster")
	// ErrDamaged means that the log on disk cannot be read: this node must not
	// vote with it, and has to join again.
	ErrDamaged = errors.New("the consensus log is damaged")
	// ErrInvalid means that the proposal or request is malformed.
	ErrInvalid = errors.New("invalid proposal")
)

// NotLeaderError says who leads instead, if that is known. It is ErrNotLeader.
type NotLeaderError struct{ Leader node.ID }

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return ErrNotLeader.Error()
	}
	return fmt.Sprintf("%v, %s is", ErrNotLeader, e.Leader)
}

// Is makes it ErrNotLeader.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// attemptError is the failure of one attempt to have a request applied.
type attemptError struct {
	err   error
	maybe bool // it may have been applied
	final bool // no use trying again
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

package peer

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrClosed: the port was closed.
	ErrClosed = errors.New("peer port is closed")
	// ErrUnknownNode: the roster does not know the node.
	ErrUnknownNode = errors.New("node is not in the roster")
	// ErrNotMember: a certificate is not (or no longer) in the roster.
	ErrNotMember = errors.New("certificate is not in the roster")
	// ErrWrongNode: another node, or another certificate, answers at a member's address.
	ErrWrongNode = errors.New("the certificate presented is not the one in the roster")
	// ErrBusy: the other side admitted us but does not take connections of this protocol now.
	ErrBusy = errors.New("the peer accepts no connections of this protocol at the moment")
	// ErrTooMany: a bound on connections was reached.
	ErrTooMany = errors.New("too many connections")
)

// Reasons for which Join fails for good: trying again without changing something will not help.
var (
	// ErrSecret: the two nodes hold different secrets, or the other one is not a node of ours at all.
	ErrSecret = errors.New("cluster_secret does not match")
	// ErrToken: the join token is not known there.
	ErrToken = errors.New("the join token is not accepted")
	// ErrClusterID: the cluster reached is another one.
	ErrClusterID = errors.New("cluster_id does not match")
	// ErrClusterKey: the cluster's RSA key is not the pinned one, or the member could not prove to hold it.
	ErrClusterKey = errors.New("cluster_pub_fingerprint does not match")
	// ErrVersion: the two nodes have no version of the join protocol in common.
	ErrVersion = errors.New("join protocol versions do not match")
	// ErrRefused: the cluster knows us now and says no; the text says why.
	ErrRefused = errors.New("the cluster refused the join")
	// ErrSelf: the address given leads back to this very node.
	ErrSelf = errors.New("the address is this node's own")
)

// Reasons for which Join should be tried again later.
var (
	// ErrNotReady: the node asked is not a member of a cluster itself (yet).
	ErrNotReady = errors.New("the node is not a member of a cluster yet")
	// ErrSlowDown: too many attempts; wait.
	ErrSlowDown = errors.New("the node asks to slow down")
	// ErrUnreachable: no usable connection could be made or it broke.
	ErrUnreachable = errors.New("no connection")
)

// JoinRetryable reports whether the same Join may succeed later without anyone changing a configuration.
func JoinRetryable(err error) bool {
	for _, e := range []error{ErrNotReady, ErrSlowDown, ErrUnreachable, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Refusal is an error a JoinHandler returns for the joiner's operator to read: Text is sent as it is. The joiner has
// proved the secret by then. Any other error is only logged here, and told as "internal error".
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

// Refusef makes a Refusal.
func Refusef(format string, a ...any) *Refusal { return &Refusal{Text: fmt.Sprintf(format, a...)} }

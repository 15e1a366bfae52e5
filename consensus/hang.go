package consensus

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// Raft writes its log in its main loop, and sends heartbeats beside that. A leader whose disk does not answer would so
// remain the leader for as long as that takes, and nothing could be decided, although all others work. So such a leader
// sends nothing, and counts as none: another node is elected. When the disk answers, raft sees that its lease is over.

var errDiskHangs = errors.New("the disk of this node does not answer")

// diskHangs tells whether something has been on its way to the disk for too long. The node is open.
func (n *Node) diskHangs() bool { return n.store.watched.hangs() }

// leads tells whether this node leads, as far as it knows.
func (n *Node) leads(r *raft.Raft) bool { return r.State() == raft.Leader && !n.diskHangs() }

// askRaft starts something of raft's and waits for the answer, but not beyond ctx. Raft's calls have no bound while its
// main loop waits for the disk, so that a goroutine stays until it answers: one for each call in the short time in
// which this node does not know yet that its disk hangs.
func askRaft(ctx context.Context, start func() raft.Future) error {
	answered := make(chan error, 1)
	go func() { answered <- start().Error() }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

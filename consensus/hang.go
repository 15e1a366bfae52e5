package consensus

import (
	"errors"

	"github.com/hashicorp/raft"
)

// Raft writes its log in its main loop, and sends heartbeats beside that. A leader whose disk does not answer would so
// remain the leader for as long as that takes, and nothing could be decided, although all others work. So such a leader
// sends nothing, and counts as none: another node is elected. When the disk answers, raft sees that its lease is over.

var errDiskHangs = errors.New("the disk of this node does not answer")

// diskHangs tells whether entries have been on their way to the log for too long. The node is open.
func (n *Node) diskHangs() bool { return n.store.watched.hangs() }

// leads tells whether this node leads, as far as it knows.
func (n *Node) leads(r *raft.Raft) bool { return r.State() == raft.Leader && !n.diskHangs() }

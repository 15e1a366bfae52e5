package consensus

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// Role is what a node is in the cluster at the moment.
type Role string

// The roles.
const (
	RoleNew       Role = "new"       // has no cluster yet
	RoleLearner   Role = "learner"   // receives the log, has no vote
	RoleFollower  Role = "follower"  // votes
	RoleCandidate Role = "candidate" // looks for a majority
	RoleLeader    Role = "leader"
	RoleDetached  Role = "detached" // was taken off the roster
	RoleStopped   Role = "stopped"
)

// PeerStats is how far a node is, as others need to know it.
type PeerStats struct {
	ID        node.ID `json:"id"`
	Leader    node.ID `json:"leader,omitempty"` // whom it follows, itself when it leads
	Serving   bool    `json:"serving,omitempty"`
	Term      uint64  `json:"term"`
	LastIndex uint64  `json:"last_index"` // newest log entry on disk
	Commit    uint64  `json:"commit"`     // newest entry known to be committed
	Applied   uint64  `json:"applied"`    // newest command entry in the state
	Rev       uint64  `json:"rev"`        // revision of the state
	// Syncing: it lacks something else than the log that it needs before it serves; it gets no vote before.
	Syncing bool `json:"syncing,omitempty"`
}

// Status is where this node stands. It is made from local knowledge and needs
// no majority.
type Status struct {
	ID        node.ID
	Role      Role
	Leader    node.ID // empty: none known
	Term      uint64
	LastIndex uint64
	Commit    uint64
	Applied   uint64 // newest command entry in the state
	Rev       uint64
	// LastContact is the age of the last word of a leader; zero on the leader,
	// negative when there never was one.
	LastContact time.Duration
	// HasQuorum: the leader heard a majority within its lease; any other node
	// heard a leader within two heartbeat timeouts.
	HasQuorum bool
	CaughtUp  bool
	Behind    time.Duration // see Node.Behind
	Voters    []node.ID
	Learners  []node.ID
	Err       error // why the node is stopped
}

// LocalStats returns the PeerStats of this node.
func (n *Node) LocalStats() PeerStats {
	s := PeerStats{ID: n.cfg.ID}
	v := n.View()
	s.Applied, s.Rev = v.Index(), v.Rev()
	r := n.raft.Load()
	if r == nil {
		return s
	}
	s.Leader, s.Serving = n.Leader(), n.Serving()
	s.Term, s.LastIndex, s.Commit = r.CurrentTerm(), r.LastIndex(), r.CommitIndex()
	return s
}

// Leader is the leader this node knows, possibly itself; empty when none.
func (n *Node) Leader() node.ID {
	r := n.raft.Load()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	if node.ID(id) == n.cfg.ID && n.diskHangs() {
		return ""
	}
	return node.ID(id)
}

// Serving tells whether this node leads and has passed its barrier.
func (n *Node) Serving() bool {
	r := n.raft.Load()
	return r != nil && n.serving.Load() && n.leads(r)
}

// Status returns where this node stands.
func (n *Node) Status() Status {
	p := n.LocalStats()
	s := Status{
		ID: p.ID, Role: RoleStopped, Leader: p.Leader, Term: p.Term, LastIndex: p.LastIndex, Commit: p.Commit,
		Applied: p.Applied, Rev: p.Rev, LastContact: -1, CaughtUp: n.CaughtUp(), Behind: n.Behind(), Err: n.Err(),
	}
	r := n.raft.Load()
	if r == nil || n.isStopped() {
		return s
	}
	s.Voters, s.Learners = readServers(r)
	s.LastContact, s.HasQuorum = n.lastContact(r)
	s.Role = n.currentRole(r.State(), s)
	return s
}

func (n *Node) currentRole(st raft.RaftState, s Status) Role {
	switch {
	case st == raft.Shutdown:
		return RoleStopped
	case st == raft.Leader && !n.diskHangs():
		return RoleLeader
	case n.Detached():
		return RoleDetached
	case s.LastIndex == 0 && !n.View().Initialized():
		return RoleNew
	case !slices.Contains(s.Voters, n.cfg.ID):
		return RoleLearner
	case st == raft.Candidate:
		return RoleCandidate
	}
	return RoleFollower
}

// Detached tells that this node was taken off the roster, as far as it can
// know: its state lacks it and no leader talks to it any more.
func (n *Node) Detached() bool {
	r := n.raft.Load()
	v := n.View()
	if r == nil || !v.Initialized() || r.State() == raft.Leader {
		return false
	}
	if _, ok := v.Member(n.cfg.ID); ok {
		return false
	}
	_, heard := n.lastContact(r)
	return !heard
}

// lastContact returns the age of the last word of a leader, and whether that
// means a majority is there.
func (n *Node) lastContact(r *raft.Raft) (time.Duration, bool) {
	if n.leads(r) {
		return 0, true // raft steps down when the lease is over
	}
	at := r.LastContact()
	if at.IsZero() {
		return -1, false
	}
	age := time.Since(at)
	return age, n.Leader() != "" && age < 2*n.cfg.Timing.Heartbeat
}

// readServers reads raft's configuration, in the order of ids.
func readServers(r *raft.Raft) (voters, learners []node.ID) {
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil, nil
	}
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters = append(voters, node.ID(s.ID))
		} else {
			learners = append(learners, node.ID(s.ID))
		}
	}
	slices.Sort(voters)
	slices.Sort(learners)
	return voters, learners
}

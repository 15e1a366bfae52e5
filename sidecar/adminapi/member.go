package adminapi

import "time"

// Role says what a member may decide.
type Role string

// Roles of a member.
const (
	RoleVoter   Role = "voter"   // votes and serves minions
	RoleLearner Role = "learner" // receives the log, does not vote yet
	RoleWitness Role = "witness" // votes, has no salt-master
)

// State says how gossip sees a member.
type State string

// States of a member.
const (
	StateAlive  State = "alive"
	StateFailed State = "failed"
	StateLeft   State = "left"
)

// Member is one node of the roster as the answering node knows it. Facts that
// only the node itself can tell are pointers: nil means not known here, as
// for a node that is down.
type Member struct {
	ID      string `json:"id"`
	Address string `json:"address"` // of the peer port, host:port
	Role    Role   `json:"role"`
	State   State  `json:"state"`
	// when the node that answered first saw the state, of a member that is not alive
	Since       time.Time `json:"since,omitzero"`
	Leader      bool      `json:"leader"`
	Term        uint64    `json:"term"` // newest known raft term of this member
	SaltVersion string    `json:"salt_version,omitempty"`
	Version     string    `json:"version,omitempty"` // of saltclusterd
	Subscribers *int      `json:"subscribers,omitempty"`
	Lag         *uint64   `json:"lag,omitempty"` // log entries that it has not applied yet
	Ready       *bool     `json:"ready,omitempty"`
	Reasons     []string  `json:"reasons,omitempty"` // why the node is not ready, in short
	Health      []Reason  `json:"health,omitempty"`  // results of its health checks that are not ok
	Draining    bool      `json:"draining,omitempty"`
	Self        bool      `json:"self,omitempty"` // this is the node that answered
	// data that the node still fetches before it serves; empty: none, or not known
	Sync []SyncPart `json:"sync,omitempty"`
	// number of returns that were put aside because its salt-master does not answer them
	Unanswered int `json:"unanswered,omitempty"`
}

// Members is the answer of GET /v1/members.
type Members struct {
	ClusterID string   `json:"cluster_id"`
	From      string   `json:"from"`    // the node that answered
	Members   []Member `json:"members"` // sorted by id
}

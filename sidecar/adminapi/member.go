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
	// Since is when the state was first seen, by the node that answered, of a member that is not alive.
	Since       time.Time `json:"since,omitzero"`
	Leader      bool      `json:"leader"`
	Term        uint64    `json:"term"` // newest term known of this member
	SaltVersion string    `json:"salt_version,omitempty"`
	Version     string    `json:"version,omitempty"` // of saltclusterd
	Subscribers *int      `json:"subscribers,omitempty"`
	Lag         *uint64   `json:"lag,omitempty"` // entries its applied index is behind the leader's commit
	Ready       *bool     `json:"ready,omitempty"`
	Reasons     []string  `json:"reasons,omitempty"` // short, why not ready
	Health      []Reason  `json:"health,omitempty"`  // what its health checks find fault with, in full
	Draining    bool      `json:"draining,omitempty"`
	Self        bool      `json:"self,omitempty"` // the node that answered
	// Sync is what the node has yet to catch up with before it serves; empty: it has, or does not say.
	Sync []SyncPart `json:"sync,omitempty"`
	// Unanswered counts the returns that its salt-master does not answer, and that were put aside.
	Unanswered int `json:"unanswered,omitempty"`
}

// Members is the answer of GET /v1/members.
type Members struct {
	ClusterID string   `json:"cluster_id"`
	From      string   `json:"from"`    // the node that answered
	Members   []Member `json:"members"` // sorted by id
}

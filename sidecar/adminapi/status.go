package adminapi

import "time"

// Status is the answer of GET /v1/status: one screen about the cluster and the
// node that answered.
type Status struct {
	Cluster  *Cluster  `json:"cluster,omitempty"`  // nil: this node belongs to no cluster yet
	Removed  string    `json:"removed,omitempty"`  // why and when this node was removed from its cluster
	Starting bool      `json:"starting,omitempty"` // this node belongs to a cluster, and is still starting
	Members  []Member  `json:"members"`            // sorted by id
	Node     Node      `json:"node"`               // the node that answered
	Problems []Problem `json:"problems"`           // worst first; empty means healthy
}

// Cluster is what the roster and consensus say about the cluster as a whole.
type Cluster struct {
	ID         string   `json:"id"`   // option cluster_id
	UUID       string   `json:"uuid"` // set once, when the cluster was created
	Leader     string   `json:"leader,omitempty"`
	Term       uint64   `json:"term"`
	Quorum     Quorum   `json:"quorum"`
	VoterIDs   []string `json:"voter_ids,omitempty"`  // nodes that vote now; the others are in reserve
	Generation uint64   `json:"generation,omitempty"` // how often the cluster was recovered or restored
	// of what the cluster has agreed on, as far as this node has it
	Rev                 uint64 `json:"rev,omitempty"`
	Epoch               uint64 `json:"epoch"`                          // number of the current cluster AES key
	IdentityFingerprint string `json:"identity_fingerprint,omitempty"` // of the cluster's master.pub
}

// Quorum counts voters: decisions need Need of them.
type Quorum struct {
	Voters int  `json:"voters"`
	Alive  int  `json:"alive"`
	Need   int  `json:"need"`
	OK     bool `json:"ok"` // this node sees enough voters for decisions
}

// Level grades a Problem or a readiness Reason.
type Level string

// Levels from harmless to serious.
const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warn"
	LevelFail Level = "fail"
)

// Problem is one thing that is wrong and what to type about it.
type Problem struct {
	Level   Level  `json:"level"`
	Node    string `json:"node,omitempty"` // node that has the problem; empty: the cluster
	Message string `json:"message"`        // a sentence
	Hint    string `json:"hint,omitempty"` // what to do or type next
}

// Node describes the node that answered.
type Node struct {
	ID          string    `json:"id"`
	Version     string    `json:"version"`                // of saltclusterd
	SaltVersion string    `json:"salt_version,omitempty"` // of the local salt-master; empty: unknown
	Started     time.Time `json:"started"`
	Edges       []Edge    `json:"edges"`
	Upstream    Upstream  `json:"upstream"`
	Ready       bool      `json:"ready"`
	Draining    bool      `json:"draining,omitempty"`
	Reasons     []Reason  `json:"reasons,omitempty"` // why not ready, and warnings
	Returns     *Returns  `json:"returns,omitempty"` // nil: the node belongs to no cluster yet
	Jobs        *Jobs     `json:"jobs,omitempty"`    // nil: the node belongs to no cluster yet
	Files       *Files    `json:"files,omitempty"`   // nil: the node belongs to no cluster yet

	Wall *WallLine `json:"wall,omitempty"` // nil: the node belongs to no cluster yet

	KeyStore *KeyStore `json:"key_store,omitempty"` // nil: the master has its keys in files only

	Roots *RootsLine `json:"roots,omitempty"` // nil: the node belongs to no cluster yet, or is a witness
	Sync  []SyncPart `json:"sync,omitempty"`  // data that the node still fetches before it serves; empty: none
}

// KeyStore is the local master's own store of minion keys, which is kept matches the files.
type KeyStore struct {
	Driver  string  `json:"driver"` // keys.cache_driver of the master
	Keys    int     `json:"keys"`
	Fill    float64 `json:"fill"`              // used part of its table, from 0 to 1
	Lacking int     `json:"lacking,omitempty"` // keys for which the store has no room
	Busy    bool    `json:"busy,omitempty"`    // the store is being updated
	Error   string  `json:"error,omitempty"`   // why the store cannot be updated
}

// Edge is one listening side that minions use.
type Edge struct {
	Name        string   `json:"name"` // "pub" (4505) or "req" (4506)
	Addresses   []string `json:"addresses"`
	Connections int      `json:"connections"`
	InFlight    int      `json:"in_flight,omitempty"` // requests that are not answered yet; req only
	Refused     uint64   `json:"refused,omitempty"`   // connections and requests refused since the start
	Cut         uint64   `json:"cut,omitempty"`       // connections ended by a limit since the start
}

// Upstream is the state of the connections to the local salt-master.
type Upstream struct {
	Address     string    `json:"address,omitempty"` // address that requests are sent to
	Up          bool      `json:"up"`
	Subscribed  bool      `json:"subscribed"` // this node receives the master's publications
	SignedIn    bool      `json:"signed_in"`  // this node has the master's AES key
	Connections int       `json:"connections"`
	Queued      int       `json:"queued,omitempty"`
	Since       time.Time `json:"since,omitzero"`  // since when up has its present value
	Error       string    `json:"error,omitempty"` // last error while the master is down
}

// Reason is one health check that is not ok.
type Reason struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

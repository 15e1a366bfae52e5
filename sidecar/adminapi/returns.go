package adminapi

import "time"

// Returns says how a node takes the returns of minions, and which of them wait.
type Returns struct {
	Paths    []ReturnPath `json:"paths"`
	Journals []Journal    `json:"journals"`
}

// The ways of a return.
const (
	PathNative = "native" // journal and job cache, without the salt-master
	PathMaster = "master" // the salt-master's own
)

// ReturnPath is the way of the returns that are sent with a command.
type ReturnPath struct {
	Command string `json:"command"`
	Path    string `json:"path"`
	Reason  string `json:"reason,omitempty"` // why the salt-master gets them
}

// Journal is one journal of returns: "own", "python" (what waits for the salt-master) or "to.NODE".
type Journal struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // ok, full, disk full, read-only, failing
	Bytes    int64     `json:"bytes"`
	MaxBytes int64     `json:"max_bytes"`
	Error    string    `json:"error,omitempty"`
	Waiting  []Waiting `json:"waiting"`
}

// Waiting is what one consumer of a journal has not done yet.
type Waiting struct {
	Consumer string    `json:"consumer"` // files, events, master, forward
	Records  uint64    `json:"records"`
	Oldest   time.Time `json:"oldest,omitzero"` // when the first of them came in
	Error    string    `json:"error,omitempty"` // why it does not go on
}

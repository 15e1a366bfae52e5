package roots

import (
	"time"

	"saltclusterd/gossip/node"
)

// Status is what an operator may want to know.
type Status struct {
	Mode         Mode          `json:"mode"`
	Base         uint64        `json:"base"` // number of the revision on this disk; 0: none
	BaseRoot     Hash          `json:"base_root"`
	Head         uint64        `json:"head"`
	HeadRoot     Hash          `json:"head_root"`
	Live         Hash          `json:"live"`   // root of what the last scan saw
	Edited       bool          `json:"edited"` // live differs from base
	CaughtUp     bool          `json:"caught_up"`
	Held         []uint64      `json:"held,omitempty"`
	Progress     Progress      `json:"progress"`
	Slots        []SlotStatus  `json:"slots"`
	Conflicts    int           `json:"conflicts"`
	Problems     []string      `json:"problems,omitempty"`
	LastScan     time.Time     `json:"last_scan"`
	LastScanTook time.Duration `json:"last_scan_took"`
	Watching     bool          `json:"watching"` // the kernel gives hints
	LastSwitch   *Switch       `json:"last_switch,omitempty"`
}

// Phase is what the engine is doing.
type Phase string

// The phases.
const (
	PhaseIdle    Phase = "idle"
	PhaseScan    Phase = "scan"
	PhaseFetch   Phase = "fetch"
	PhaseSwitch  Phase = "switch"
	PhasePropose Phase = "propose"
)

// Progress tells how far the engine is with a revision.
type Progress struct {
	Phase     Phase  `json:"phase"`
	Revision  uint64 `json:"revision,omitempty"`
	Files     int    `json:"files"` // to stage
	FilesDone int    `json:"files_done"`
	Bytes     int64  `json:"bytes"` // to fetch from peers
	BytesDone int64  `json:"bytes_done"`
}

// SlotStatus is one slot.
type SlotStatus struct {
	Name        SlotName `json:"name"`
	Dir         string   `json:"dir,omitempty"`         // empty: not configured here
	Unavailable string   `json:"unavailable,omitempty"` // why; empty when it is fine
	Missing     bool     `json:"-"`                     // because the directory does not exist
	Replaced    bool     `json:"replaced,omitempty"`    // another directory is in its place: see Refill
	Lacking     bool     `json:"lacking,omitempty"`     // it is not, and the cluster has something in it
	Files       int      `json:"files"`
	Bytes       int64    `json:"bytes"`
}

// Switch tells what the last switch did.
type Switch struct {
	Revision  uint64        `json:"revision"`
	Installed int           `json:"installed"`
	Removed   int           `json:"removed"`
	Kept      int           `json:"kept"` // local edits that it found in its way
	Aside     int           `json:"aside"`
	Took      time.Duration `json:"took"` // with requests held up
	At        time.Time     `json:"at"`
}

// Change is a difference between two trees.
type Change struct {
	Slot SlotName `json:"slot"`
	Path string   `json:"path"`
	What string   `json:"what"`           // added, removed, changed, mode, type
	From string   `json:"from,omitempty"` // type before
	To   string   `json:"to,omitempty"`
	Size int64    `json:"size,omitempty"`
}

// Conflict is something that was put aside.
type Conflict struct {
	ID       string    `json:"id"`
	Slot     SlotName  `json:"slot"`
	Path     string    `json:"path"`
	Reason   string    `json:"reason"`
	Revision uint64    `json:"revision"` // that won
	Node     node.ID   `json:"node"`
	Time     time.Time `json:"time"`
	Kept     string    `json:"kept"` // where the content is now
	Type     string    `json:"type"`
	Size     int64     `json:"size"`
}

// SyncOptions say what Sync does.
type SyncOptions struct {
	DryRun bool
	Env    string // only slots of this environment; empty: all
	Force  bool   // deletions are confirmed
	// a directory that is left alone because another is in its place: what is there now counts, whatever that deletes
	Accept string
	Note   string
}

// SyncResult tells what Sync found and did.
type SyncResult struct {
	Revision Revision `json:"revision"` // proposed, or the head when there was nothing to propose
	Proposed bool     `json:"proposed"`
	Held     bool     `json:"held"`
	Changes  []Change `json:"changes"` // of local edits; at most MaxChanges
	More     int      `json:"more"`    // changes not listed
}

// MaxChanges bounds the changes that an answer lists.
const MaxChanges = 1000

package adminapi

import (
	"context"
	"net/url"
	"time"
)

// SyncRootsRequest is the body of POST /v1/roots/sync: give what stands in this
// node's file and pillar roots to all others, now.
type SyncRootsRequest struct {
	DryRun  bool          `json:"dry_run,omitempty"` // say what would be sent
	Env     string        `json:"env,omitempty"`     // of this environment only; empty: of all
	Force   bool          `json:"force,omitempty"`   // also when much is deleted
	Accept  string        `json:"accept,omitempty"`  // a directory that is left alone because another is in its place
	Wait    bool          `json:"wait"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// What an operator may decide about a revision of the roots.
const (
	RootsRollback = "rollback" // make it the newest again
	RootsConfirm  = "confirm"  // put it in force, it was held
	RootsDrop     = "drop"     // refuse it, it was held
)

// DecideRootsRequest is the body of POST /v1/roots/decide.
type DecideRootsRequest struct {
	Decision string        `json:"decision"`
	Revision uint64        `json:"revision"`
	Wait     bool          `json:"wait"`
	Timeout  time.Duration `json:"timeout,omitempty"`
}

// AsideRootsRequest is the body of POST /v1/roots/aside: what becomes of
// something that this node has put aside.
type AsideRootsRequest struct {
	ID      string `json:"id"`
	Restore bool   `json:"restore"` // put it back as an edit; else it is removed
}

// RefillRootsRequest is the body of POST /v1/roots/refill: a directory of
// this node's that is left alone because another is in its place gets what
// the cluster has.
type RefillRootsRequest struct {
	Dir     string        `json:"dir"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

func (r SyncRootsRequest) WaitTime() time.Duration   { return r.Timeout }
func (r DecideRootsRequest) WaitTime() time.Duration { return r.Timeout }
func (AsideRootsRequest) WaitTime() time.Duration    { return asideTime }
func (r RefillRootsRequest) WaitTime() time.Duration { return r.Timeout }

// asideTime bounds what is done about something put aside: the node looks at its disk.
const asideTime = 90 * time.Second

// RootsOutcome says what a revision did on each node; part of an Outcome.
type RootsOutcome struct {
	Revision *RootsRevision `json:"revision,omitempty"`
	Proposed bool           `json:"proposed"` // false: nothing had to be sent
	DryRun   bool           `json:"dry_run,omitempty"`
	Held     bool           `json:"held,omitempty"` // the revision waits for roots confirm
	Changes  []RootsChange  `json:"changes"`
	More     int            `json:"more,omitempty"` // number of changes that are not listed
	Nodes    []RootsApplied `json:"nodes"`
	Failed   []string       `json:"failed,omitempty"` // nodes on which the revision is not in force
}

// RootsApplied is one node after a sync.
type RootsApplied struct {
	Node      string        `json:"node"`
	Applied   bool          `json:"applied"`
	Author    bool          `json:"author,omitempty"` // the revision was made on this node
	Revision  uint64        `json:"revision"`         // revision on the node's disk
	Installed int           `json:"installed"`
	Removed   int           `json:"removed"`
	Kept      int           `json:"kept,omitempty"`  // number of local edits that were kept
	Aside     int           `json:"aside,omitempty"` // number of files put aside, see roots conflicts
	Took      time.Duration `json:"took,omitempty"`  // time for which requests for files had to wait
	Skipped   string        `json:"skipped,omitempty"`
	Error     string        `json:"error,omitempty"`
}

// RootsRevision is one agreed state of all roots.
type RootsRevision struct {
	Number  uint64    `json:"number"`
	Parent  uint64    `json:"parent,omitempty"`
	Root    string    `json:"root"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`  // first, edit, merge, rollback
	State   string    `json:"state"` // applied, held, dropped
	Current bool      `json:"current,omitempty"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Changed int       `json:"changed"`
	Removed int       `json:"removed"`
	Note    string    `json:"note,omitempty"`
}

// RootsChange is a difference between two trees.
type RootsChange struct {
	Slot string `json:"slot"` // kind:environment:position
	Path string `json:"path"`
	What string `json:"what"` // added, removed, changed, mode, type
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// RootsStatus is the answer of GET /v1/roots.
type RootsStatus struct {
	From  string         `json:"from"`
	Head  *RootsRevision `json:"head,omitempty"` // newest revision in force; nil: none yet
	Nodes []RootsNode    `json:"nodes"`
}

// RootsNode is how the roots of one node are.
type RootsNode struct {
	Node       string      `json:"node"`
	Error      string      `json:"error,omitempty"` // why the node did not answer
	Off        string      `json:"off,omitempty"`   // why no roots are replicated there
	Mode       string      `json:"mode,omitempty"`
	Revision   uint64      `json:"revision"` // that is on its disk
	Current    bool        `json:"current"`
	Edited     bool        `json:"edited,omitempty"` // the node's files were edited since
	Phase      string      `json:"phase,omitempty"`
	Files      int         `json:"files,omitempty"` // number of files to stage
	FilesDone  int         `json:"files_done,omitempty"`
	Bytes      int64       `json:"bytes,omitempty"` // number of bytes to fetch
	BytesDone  int64       `json:"bytes_done,omitempty"`
	Conflicts  int         `json:"conflicts"`
	Watching   bool        `json:"watching"`
	LastScan   time.Time   `json:"last_scan,omitzero"`
	LastSwitch time.Time   `json:"last_switch,omitzero"`
	Slots      []RootsSlot `json:"slots"`
	Problems   []string    `json:"problems,omitempty"`
	Notes      []string    `json:"notes,omitempty"` // directories that are not replicated there, and why
}

// RootsSlot is one directory of file_roots or pillar_roots.
type RootsSlot struct {
	Slot        string `json:"slot"`
	Dir         string `json:"dir,omitempty"` // empty: not configured on that node
	Unavailable string `json:"unavailable,omitempty"`
	Replaced    bool   `json:"replaced,omitempty"` // another directory is in its place, so it is excluded
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
}

// RootsDiff is the answer of GET /v1/roots/diff: how to get from one node's
// disk to another's.
type RootsDiff struct {
	From    string        `json:"from"`
	To      string        `json:"to"`
	Changes []RootsChange `json:"changes"`
	LeftOut []string      `json:"left_out,omitempty"` // directories that are not compared, with the node and why
}

// RootsHistory is the answer of GET /v1/roots/history, the oldest first.
type RootsHistory struct {
	Revisions []RootsRevision `json:"revisions"`
}

// RootsConflicts is the answer of GET /v1/roots/conflicts.
type RootsConflicts struct {
	Conflicts []RootsConflict `json:"conflicts"`
	Missing   []string        `json:"missing,omitempty"` // nodes that do not say
}

// RootsConflict is something that lost against the cluster and was put aside.
type RootsConflict struct {
	Node     string    `json:"node"` // on whose disk it is
	ID       string    `json:"id"`
	Slot     string    `json:"slot"`
	Path     string    `json:"path"`
	Reason   string    `json:"reason"`
	Revision uint64    `json:"revision"` // that won
	Time     time.Time `json:"time"`
	Kept     string    `json:"kept"` // where it is now
	Size     int64     `json:"size"`
}

// RootsLine is what the status says of the roots of the node that answers.
type RootsLine struct {
	Off       string `json:"off,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Base      uint64 `json:"base"`
	Head      uint64 `json:"head"`
	Phase     string `json:"phase,omitempty"`
	Files     int    `json:"files"`
	Conflicts int    `json:"conflicts"`
}

// SyncRoots pushes this node's roots.
func (c *Client) SyncRoots(ctx context.Context, r SyncRootsRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/roots/sync", r, progress)
}

// DecideRoots decides about a revision.
func (c *Client) DecideRoots(ctx context.Context, r DecideRootsRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/roots/decide", r, progress)
}

// AsideRoots decides about something that was put aside on this node.
func (c *Client) AsideRoots(ctx context.Context, r AsideRootsRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/roots/aside", r, progress)
}

// RefillRoots fills a directory that is left alone on this node.
func (c *Client) RefillRoots(ctx context.Context, r RefillRootsRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/roots/refill", r, progress)
}

// RootsStatus asks how the roots are on all nodes.
func (c *Client) RootsStatus(ctx context.Context) (RootsStatus, error) {
	return getJSON[RootsStatus](ctx, c, "/roots", nil)
}

// RootsHistory asks for the revisions that are kept.
func (c *Client) RootsHistory(ctx context.Context) (RootsHistory, error) {
	return getJSON[RootsHistory](ctx, c, "/roots/history", nil)
}

// RootsConflicts asks what was put aside on all nodes.
func (c *Client) RootsConflicts(ctx context.Context) (RootsConflicts, error) {
	return getJSON[RootsConflicts](ctx, c, "/roots/conflicts", nil)
}

// RootsDiff asks how the disks of two nodes differ.
func (c *Client) RootsDiff(ctx context.Context, from, to string) (RootsDiff, error) {
	return getJSON[RootsDiff](ctx, c, "/roots/diff", url.Values{"from": {from}, "to": {to}})
}

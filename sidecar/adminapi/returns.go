package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Returns says how a node takes the returns of minions, and which of them wait.
type Returns struct {
	Paths    []ReturnPath `json:"paths"`
	Journals []Journal    `json:"journals"`
	// number of returns that were put aside because the salt-master does not answer them
	Unanswered      int       `json:"unanswered,omitempty"`
	UnansweredSince time.Time `json:"unanswered_since,omitzero"`
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
	Reason  string `json:"reason,omitempty"` // why the salt-master gets these returns
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
	Oldest   time.Time `json:"oldest,omitzero"` // when the oldest of them arrived
	Error    string    `json:"error,omitempty"` // why the consumer does not proceed
}

// UnansweredReturn is a return that only the salt-master itself can take, and that it does not answer though it answers
// others.
type UnansweredReturn struct {
	ID       string    `json:"id"` // argument of returns drop; the file is state_dir/returns/unanswered/ID.return
	Minion   string    `json:"minion,omitempty"`
	JID      string    `json:"jid,omitempty"`
	Function string    `json:"function,omitempty"`
	Received time.Time `json:"received,omitzero"` // when it arrived from the minion
	Since    time.Time `json:"since"`             // when it was put aside
	Bytes    int64     `json:"bytes"`
	Tries    int       `json:"tries"` // tries since it was put aside, or since saltclusterd was started
	// when the salt-master gets it again; zero: only with returns retry
	Next  time.Time `json:"next,omitzero"`
	Error string    `json:"error,omitempty"` // result of the last try
}

// UnansweredReturns is the answer of GET /v1/returns/unanswered.
type UnansweredReturns struct {
	From    string             `json:"from"` // the node that answered, and has the returns
	Returns []UnansweredReturn `json:"returns"`
	More    int                `json:"more,omitempty"` // number of returns that are not listed
	Full    bool               `json:"full,omitempty"` // no further returns can be put aside: the next one holds up those after it
}

// MaxUnansweredListed bounds the list.
const MaxUnansweredListed = 1000

// RetriedReturns is the answer of POST /v1/returns/unanswered.
type RetriedReturns struct {
	From       string `json:"from"`
	Returns    int    `json:"returns"`               // that the salt-master gets now, one after the other
	Damaged    int    `json:"damaged,omitempty"`     // that it cannot get
	MasterDown bool   `json:"master_down,omitempty"` // it gets them when it is up
}

// UnansweredReturns lists what a node's salt-master does not answer, what waits longest first.
func (c *Client) UnansweredReturns(ctx context.Context) (UnansweredReturns, error) {
	return getJSON[UnansweredReturns](ctx, c, "/returns/unanswered", nil)
}

// RetryReturns gives all of them to the salt-master once more.
func (c *Client) RetryReturns(ctx context.Context) (RetriedReturns, error) {
	return sendJSON[RetriedReturns](ctx, c, http.MethodPost, "/returns/unanswered", struct{}{})
}

// DropReturn discards one of them: no master will get it.
func (c *Client) DropReturn(ctx context.Context, id string) (UnansweredReturn, error) {
	return sendJSON[UnansweredReturn](ctx, c, http.MethodDelete, "/returns/unanswered/"+url.PathEscape(id), nil)
}

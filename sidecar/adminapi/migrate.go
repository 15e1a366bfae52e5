package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// MigrateStep is what a node is asked to do on its way from a shared file system to its own.
type MigrateStep string

// The steps.
const (
	MigrateStandIn MigrateStep = "stand-in" // stand for the share towards the nodes that leave it
	MigrateCopy    MigrateStep = "copy"     // copy what is on the share; nothing else changes
	MigrateSwitch  MigrateStep = "switch"   // copy what has changed, change the configuration, let it take effect
	MigrateBack    MigrateStep = "back"     // undo the switch
)

// MigrateRequest is the body of POST /v1/migrate. The answer is the state of the node when the step has begun.
type MigrateRequest struct {
	Node string      `json:"node"`
	Step MigrateStep `json:"step"`
	To   string      `json:"to,omitempty"` // where the copies go; empty: the default
}

// Migration is the answer of GET /v1/migrate.
type Migration struct {
	From    string            `json:"from"`  // the node that asked the others
	Nodes   []MigrateNode     `json:"nodes"` // that have a salt-master, sorted by id
	Missing map[string]string `json:"missing,omitempty"`
}

// MigrateNode is how far a node is.
type MigrateNode struct {
	Node     string         `json:"node"`
	Shared   bool           `json:"shared"`             // its saltclusterd works on the share
	Stage    string         `json:"stage"`              // shared, copied, switching or isolated
	StandIn  bool           `json:"stand_in,omitempty"` // it stands for the share
	Busy     MigrateStep    `json:"busy,omitempty"`     // what it is doing
	Doing    string         `json:"doing,omitempty"`    // how far it is with that, a sentence
	Error    string         `json:"error,omitempty"`    // why the last step ended
	ByHand   *MigrateByHand `json:"by_hand,omitempty"`  // what it waits for
	Caught   bool           `json:"caught_up"`          // it serves minions and has the content of the cluster
	Behind   string         `json:"behind,omitempty"`   // what it still lacks for that
	Switched time.Time      `json:"switched,omitzero"`

	Trees   []MigrateTree `json:"trees,omitempty"`
	Steps   []string      `json:"steps,omitempty"`   // what will be done, in order; only when asked for
	Notes   []string      `json:"notes,omitempty"`   // what stays on the share
	Refused []string      `json:"refused,omitempty"` // why it cannot be migrated
	Copied  MigrateCopied `json:"copied"`
}

// MigrateByHand is what a person has to do, and why.
type MigrateByHand struct {
	Why      string   `json:"why"`
	Commands []string `json:"commands"`
}

// MigrateTree is a directory and where its copy goes.
type MigrateTree struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	To    string `json:"to"`
	Files int    `json:"files,omitempty"` // only when asked for
	Bytes int64  `json:"bytes,omitempty"`
}

// MigrateCopied is what the last pass of copying has done.
type MigrateCopied struct {
	Files  int   `json:"files"`
	Bytes  int64 `json:"bytes"`
	Copied int   `json:"copied"`
}

// Migration asks all nodes how far they are; plan also for what they would do, with copies in to.
func (c *Client) Migration(ctx context.Context, plan bool, to string) (Migration, error) {
	q := url.Values{}
	if plan {
		q.Set("plan", "1")
		q.Set("to", to)
	}
	return getJSON[Migration](ctx, c, "/migrate", q)
}

// Migrate has a node begin a step.
func (c *Client) Migrate(ctx context.Context, r MigrateRequest) (MigrateNode, error) {
	return sendJSON[MigrateNode](ctx, c, http.MethodPost, "/migrate", r)
}

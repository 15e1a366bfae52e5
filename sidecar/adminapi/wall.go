package adminapi

import (
	"context"
	"time"
)

// WallRule is one rule for what minions may ask, and what it has found since the node's saltclusterd was started.
type WallRule struct {
	Name    string    `json:"name"`
	Mode    string    `json:"mode"`            // off, log, enforce
	Fixed   bool      `json:"fixed,omitempty"` // the mode cannot be configured
	Refused uint64    `json:"refused"`         // requests that were refused, or had forbidden parts removed
	Logged  uint64    `json:"logged"`          // requests that would have been refused
	Last    time.Time `json:"last,omitzero"`
	Minion  string    `json:"minion,omitempty"` // sender of the latest one, according to the request
	Doc     string    `json:"doc"`
}

// Wall is the answer of GET /v1/wall.
type Wall struct {
	From  string     `json:"from"` // the node that answered, whose rules these are
	Rules []WallRule `json:"rules"`
}

// WallLine is the wall in the status of a node.
type WallLine struct {
	Enforced int    `json:"enforced"` // number of enforced rules
	Log      int    `json:"log"`
	Off      int    `json:"off"`
	Refused  uint64 `json:"refused"` // requests refused since the start
	Logged   uint64 `json:"logged"`
}

// MinionProtocol is the payload version a minion speaks.
type MinionProtocol struct {
	ID      string    `json:"id"`
	Version int       `json:"version"`          // the highest it has proven to speak
	Latest  int       `json:"latest,omitempty"` // of its latest request
	Seen    time.Time `json:"seen,omitzero"`    // when that was, zero: not since that node's saltclusterd was started
	Node    string    `json:"node"`             // that saw it

	Address  string        `json:"address,omitempty"` // it came from, as a trusted load balancer or TCP says
	Returned *MinionReturn `json:"returned,omitempty"`
}

// MinionReturn is the latest return of a minion.
type MinionReturn struct {
	JID      string    `json:"jid"` // "req": not published, but from the minion's schedule or salt-call
	Function string    `json:"function,omitempty"`
	At       time.Time `json:"at"`
}

// Protocols is the answer of GET /v1/protocols.
type Protocols struct {
	From    string           `json:"from"`
	Minions []MinionProtocol `json:"minions"`           // sorted by id
	Unheard []string         `json:"unheard,omitempty"` // accepted ids that no node has heard of, sorted
	Missing []string         `json:"missing,omitempty"` // nodes that did not answer
}

// Wall asks for a node's rules and what they have found.
func (c *Client) Wall(ctx context.Context) (Wall, error) { return getJSON[Wall](ctx, c, "/wall", nil) }

// Protocols asks which payload versions minions speak, as all nodes have seen it.
func (c *Client) Protocols(ctx context.Context) (Protocols, error) {
	return getJSON[Protocols](ctx, c, "/protocols", nil)
}

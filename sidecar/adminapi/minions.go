package adminapi

import (
	"context"
	"time"
)

// Subscriber is one connection to a publish port. The protocol does not tell
// which minion it is; its address does, as far as addresses do.
type Subscriber struct {
	Node   string    `json:"node"`
	Remote string    `json:"remote"`           // address:port, as a trusted load balancer or TCP says
	Since  time.Time `json:"since,omitzero"`   // when it connected
	Silent int       `json:"silent,omitempty"` // seconds since anything was heard of it
}

// Minions is the answer of GET /v1/minions.
type Minions struct {
	From        string       `json:"from"`              // the node that answered
	Subscribers []Subscriber `json:"subscribers"`       // sorted by node and address
	Missing     []string     `json:"missing,omitempty"` // nodes that did not answer
}

// Minions asks for the connected subscribers of all nodes.
func (c *Client) Minions(ctx context.Context) (Minions, error) {
	return getJSON[Minions](ctx, c, "/minions", nil)
}

// PresentMinion is an accepted minion and whether it is alive.
type PresentMinion struct {
	ID      string    `json:"id"`
	Node    string    `json:"node,omitempty"`    // it is connected to; of one that is not alive, that heard of it last
	Address string    `json:"address,omitempty"` // its latest request came from
	Seen    time.Time `json:"seen,omitzero"`     // when that was; zero: no node remembers
	Doubt   bool      `json:"doubt,omitempty"`   // another one behind the same address may be alive instead
}

// Presence is the answer of GET /v1/presence.
type Presence struct {
	From    string          `json:"from"`    // the node that answered
	Present []PresentMinion `json:"present"` // sorted by id
	Absent  []PresentMinion `json:"absent"`  // sorted by id
	// nodes that did not answer; what they said last stands for a minute
	Missing []string `json:"missing,omitempty"`
}

// Presence asks who is alive, wherever they are connected.
func (c *Client) Presence(ctx context.Context) (Presence, error) {
	return getJSON[Presence](ctx, c, "/presence", nil)
}

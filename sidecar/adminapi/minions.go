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
	return get[Minions](ctx, c, "/minions", nil)
}

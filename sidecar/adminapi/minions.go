package adminapi

import (
	"context"
	"time"
)

// Subscriber is one connection to a publish port. The protocol does not tell
// which minion it is; its address does, as far as addresses do.
type Subscriber struct {
	Node   string    `json:"node"`
	Remote string    `json:"remote"`           // address:port, from a trusted load balancer or from TCP
	Since  time.Time `json:"since,omitzero"`   // when it connected
	Silent int       `json:"silent,omitempty"` // seconds since it last sent anything
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
	Node    string    `json:"node,omitempty"`    // node it is connected to; of a minion that is not alive, the last node that it contacted
	Address string    `json:"address,omitempty"` // address of its latest request
	Seen    time.Time `json:"seen,omitzero"`     // time of its latest request; zero: not known
	Doubt   bool      `json:"doubt,omitempty"`   // uncertain: another minion behind the same address may be alive instead
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

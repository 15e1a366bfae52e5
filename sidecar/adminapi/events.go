package adminapi

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// EventExplanation is the answer of GET /v1/events/explain: where an event that a minion sends to this node fires, and
// why.
type EventExplanation struct {
	From   string   `json:"from"`
	Minion string   `json:"minion"`
	Tag    string   `json:"tag"`
	Rule   string   `json:"rule,omitempty"` // matching line of cluster_event_policy; empty: none, so the owner's master fires it
	Policy string   `json:"policy"`         // owner, origin, leader, all
	JID    string   `json:"jid,omitempty"`  // job that the event belongs to; its publisher gets the event
	Nodes  []string `json:"nodes"`          // nodes on whose masters it fires; empty: no master can take it now
	Others []string `json:"others,omitempty"`
}

// ExplainEvent asks for it.
func (c *Client) ExplainEvent(ctx context.Context, minion, tag string) (EventExplanation, error) {
	return getJSON[EventExplanation](ctx, c, "/events/explain", url.Values{"minion": {minion}, "tag": {tag}})
}

// HandledEvents is the answer of GET /v1/events: which events of minions masters got lately, newest first. Each node
// remembers some thousand since it was started.
type HandledEvents struct {
	From    string         `json:"from"`
	Events  []HandledEvent `json:"events"`
	Missing []string       `json:"missing,omitempty"` // nodes that did not answer
}

// HandledEvent is one event on one master's bus. Why it came there is told as things are now.
type HandledEvent struct {
	Time   time.Time `json:"time"` // when the event arrived at the node
	Node   string    `json:"node"` // node on whose master it fired
	Minion string    `json:"minion"`
	Tag    string    `json:"tag"`
	From   string    `json:"from"`             // the node that the minion sent it to
	Python bool      `json:"python,omitempty"` // fired by the salt-master itself, not by saltclusterd
	Rule   string    `json:"rule,omitempty"`   // matching line of cluster_event_policy; empty: none
	Policy string    `json:"policy"`
	JID    string    `json:"jid,omitempty"`
	// such an event would now fire on another node, because the ring has changed, or because the right node could not be
	// reached at that time
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// HandledEvents asks for them, of one minion or of all (empty).
func (c *Client) HandledEvents(ctx context.Context, minion string, limit int) (HandledEvents, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if minion != "" {
		q.Set("minion", minion)
	}
	return getJSON[HandledEvents](ctx, c, "/events", q)
}

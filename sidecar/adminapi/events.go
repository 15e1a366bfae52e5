package adminapi

import (
	"context"
	"net/url"
)

// EventExplanation is the answer of GET /v1/events/explain: where an event that a minion sends to this node fires, and why.
type EventExplanation struct {
	From   string   `json:"from"`
	Minion string   `json:"minion"`
	Tag    string   `json:"tag"`
	Rule   string   `json:"rule,omitempty"` // glob of cluster_event_policy that matches; empty: none, so the owner
	Policy string   `json:"policy"`         // owner, origin, leader, all
	JID    string   `json:"jid,omitempty"`  // of the job that it belongs to, whose publisher gets it
	Nodes  []string `json:"nodes"`          // on whose masters it fires; empty: nobody can take it now
	Others []string `json:"others,omitempty"`
}

// ExplainEvent asks for it.
func (c *Client) ExplainEvent(ctx context.Context, minion, tag string) (EventExplanation, error) {
	return get[EventExplanation](ctx, c, "/events/explain", url.Values{"minion": {minion}, "tag": {tag}})
}

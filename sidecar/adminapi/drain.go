package adminapi

import (
	"context"
	"time"
)

// DrainRequest is the body of POST /v1/drain: let the minions of a node go to
// the others, and keep them away until it is undrained.
type DrainRequest struct {
	Node     string        `json:"node,omitempty"`      // empty: the node that answers
	Over     time.Duration `json:"over,omitempty"`      // hand its minions over in this time; 0: its option drain_time
	WaitJobs bool          `json:"wait_jobs,omitempty"` // not drained before the jobs published there are done
	Force    bool          `json:"force,omitempty"`     // also when minions have nowhere to go
	Wait     bool          `json:"wait"`
	Timeout  time.Duration `json:"timeout,omitempty"`
}

// UndrainRequest is the body of POST /v1/undrain: minions may come again.
type UndrainRequest struct {
	Node    string        `json:"node,omitempty"`
	Wait    bool          `json:"wait"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Drain lets a node's minions go. progress, which may be nil, is called for
// every step before Drain returns.
func (c *Client) Drain(ctx context.Context, r DrainRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/drain", r, progress)
}

// Undrain lets minions come to a node again.
func (c *Client) Undrain(ctx context.Context, r UndrainRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/undrain", r, progress)
}

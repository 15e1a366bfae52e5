package adminapi

import (
	"context"
	"time"
)

// UpgradeRequest is the body of POST /v1/upgrade: put a new process in the place of this one.
type UpgradeRequest struct {
	Binary  string        `json:"binary,omitempty"` // path; empty: the one the daemon was started as
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Upgrade puts a new process in the place of the daemon. progress, which may be nil, is called for every step before
// Upgrade returns. Afterwards Version tells who answers.
func (c *Client) Upgrade(ctx context.Context, r UpgradeRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/upgrade", r, progress)
}

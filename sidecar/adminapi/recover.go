package adminapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// RecoverPlan is the answer of GET /v1/recover: what a new cluster made out of the
// answering node alone would keep, and what can be lost.
type RecoverPlan struct {
	ClusterID   string        `json:"cluster_id"`
	UUID        string        `json:"uuid"`
	Node        string        `json:"node"`         // the one that would stay
	Address     string        `json:"address"`      // of its peer port
	Rev         uint64        `json:"rev"`          // revision of what it knows
	Index       uint64        `json:"index"`        // newest log entry it has
	LastContact time.Time     `json:"last_contact"` // when it last knew what the cluster knew
	Keys        int           `json:"keys"`
	Drop        []RecoverDrop `json:"drop"` // members that would be none any more
}

// RecoverDrop is a member that a recovery leaves behind.
type RecoverDrop struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Role    Role   `json:"role"`
	State   State  `json:"state"`
}

// RecoverRequest is the body of POST /v1/recover.
type RecoverRequest struct {
	Rev     uint64        `json:"rev"` // of the plan that was agreed to
	Timeout time.Duration `json:"timeout,omitempty"`
}

// RestoreRequest goes with the file that is posted to /v1/snapshot, as query.
type RestoreRequest struct {
	Wait    bool
	Timeout time.Duration
	Force   bool // also where members of the saved cluster are there
}

// Values is the request as a query.
func (r RestoreRequest) Values() url.Values {
	q := url.Values{"wait": {strconv.FormatBool(r.Wait)}, "timeout": {r.Timeout.String()}}
	if r.Force {
		q.Set("force", "true")
	}
	return q
}

// ParseRestore reads Values.
func ParseRestore(q url.Values) (r RestoreRequest, err error) {
	if r.Wait, err = strconv.ParseBool(q.Get("wait")); err == nil {
		r.Timeout, err = time.ParseDuration(q.Get("timeout"))
	}
	if force := q.Get("force"); err == nil && force != "" {
		r.Force, err = strconv.ParseBool(force)
	}
	if err != nil {
		return r, Errorf(CodeInvalid, "", "wait and timeout must be given, and force is true or false: %v", err)
	}
	return r, nil
}

// RecoverPlan asks what a recovery would do.
func (c *Client) RecoverPlan(ctx context.Context) (RecoverPlan, error) {
	return getJSON[RecoverPlan](ctx, c, "/recover", nil)
}

// Recover makes a cluster of one out of the node. progress as for Join.
func (c *Client) Recover(ctx context.Context, r RecoverRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/recover", r, progress)
}

// SaveSnapshot writes the whole state of the cluster, secrets included, to w.
func (c *Client) SaveSnapshot(ctx context.Context, w io.Writer) error {
	resp, err := c.doJSON(ctx, http.MethodGet, "/snapshot", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return c.explainError(ctx, err)
	}
	return nil
}

// RestoreSnapshot makes the cluster in file out of the node. progress as for Join.
func (c *Client) RestoreSnapshot(ctx context.Context, r RestoreRequest, file io.Reader,
	progress func(Progress)) (Outcome, error) {
	resp, err := c.sendBody(ctx, http.MethodPost, "/snapshot", r.Values(), file)
	if err != nil {
		return Outcome{}, err
	}
	defer resp.Body.Close()
	return c.readEvents(ctx, resp.Body, progress)
}

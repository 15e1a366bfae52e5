package adminapi

import (
	"context"
	"net/url"
	"strconv"
)

// Jobs says how far the jobs of a node's master are replicated.
type Jobs struct {
	Off     string    `json:"off,omitempty"` // why jobs are not replicated
	Known   int       `json:"known"`
	Unknown int       `json:"unknown,omitempty"` // jobs beyond the limit, which are not compared
	Peers   []JobPeer `json:"peers,omitempty"`
}

// JobPeer is how far another node has them.
type JobPeer struct {
	Node    string `json:"node"`
	Off     bool   `json:"off,omitempty"`     // this node keeps no jobs of other masters
	Waiting int    `json:"waiting,omitempty"` // number of returns and files still to be sent to it
	Differ  int    `json:"differ,omitempty"`  // number of jobs still to be compared with it
	All     bool   `json:"all,omitempty"`     // all jobs are still to be compared
	Error   string `json:"error,omitempty"`
}

// JobList is the answer of GET /v1/jobs.
type JobList struct {
	Jobs    []JobRow `json:"jobs"` // newest first
	Missing []string `json:"missing,omitempty"`
}

// JobRow is a job in a list.
type JobRow struct {
	JID      string   `json:"jid"`
	Function string   `json:"function,omitempty"`
	Target   string   `json:"target,omitempty"`
	User     string   `json:"user,omitempty"`
	Minions  int      `json:"minions"`
	Returned int      `json:"returned"`
	Nodes    []string `json:"nodes"` // nodes that have the job
}

// Job is the answer of GET /v1/jobs/JID: what the job cache of Node holds.
type Job struct {
	JID        string               `json:"jid"`
	Node       string               `json:"node"`
	Function   any                  `json:"function,omitempty"`
	Arguments  any                  `json:"arguments,omitempty"`
	Target     any                  `json:"target,omitempty"`
	TargetType any                  `json:"target_type,omitempty"`
	User       any                  `json:"user,omitempty"`
	Minions    any                  `json:"minions,omitempty"`
	EndTime    string               `json:"end_time,omitempty"`
	Returns    map[string]JobReturn `json:"returns"`
	Cut        bool                 `json:"cut,omitempty"` // the job is too large to be shown in full
}

// JobReturn is what a minion returned.
type JobReturn struct {
	Return  any `json:"return"`
	Retcode any `json:"retcode,omitempty"`
	Success any `json:"success,omitempty"`
	Out     any `json:"out,omitempty"`
}

// ListJobs asks for the newest n jobs of the cluster.
func (c *Client) ListJobs(ctx context.Context, n int) (JobList, error) {
	return getJSON[JobList](ctx, c, "/jobs", url.Values{"n": {strconv.Itoa(n)}})
}

// ShowJob asks for a job, wherever it is.
func (c *Client) ShowJob(ctx context.Context, jid string) (Job, error) {
	return getJSON[Job](ctx, c, "/jobs/"+url.PathEscape(jid), nil)
}

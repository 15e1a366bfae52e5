package adminapi

import "context"

// Checkup is the answer of GET /v1/checkup: what the doctor cannot see from outside of the daemon.
type Checkup struct {
	Node   string         `json:"node"`
	PID    int            `json:"pid"`
	UID    int            `json:"uid"`
	GID    int            `json:"gid"`
	Master *CheckupMaster `json:"master,omitempty"` // nil: a witness
	Peers  []CheckupPeer  `json:"peers"`            // sorted by id; empty without a cluster
}

// CheckupMaster is what saltclusterd has read in the salt-master's configuration.
type CheckupMaster struct {
	Version     string `json:"version"`
	User        string `json:"user"`
	PKIDir      string `json:"pki_dir"`
	CacheDir    string `json:"cachedir"`
	SockDir     string `json:"sock_dir"`
	Interface   string `json:"interface"`
	PublishPort int    `json:"publish_port"`
	RetPort     int    `json:"ret_port"`

	Roots []string `json:"roots,omitempty"` // the directories that are replicated
}

// CheckupPeer is another node as this one reaches it on the peer port.
type CheckupPeer struct {
	Node      string  `json:"node"`
	Address   string  `json:"address"`
	RoundTrip float64 `json:"round_trip,omitempty"` // seconds
	// seconds its clock is ahead of ours, give or take half the round trip; nil: it does not say
	Skew  *float64 `json:"skew,omitempty"`
	Error string   `json:"error,omitempty"` // it does not answer
}

// Checkup asks for it.
func (c *Client) Checkup(ctx context.Context) (Checkup, error) {
	return getJSON[Checkup](ctx, c, "/checkup", nil)
}

package leadership

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Path is where a member asks the leader to hand over.
const Path = "/v1/transfer"

const (
	maxTransfer = 1 << 10
	// electionWithin is how long an election may take, and a transfer is tried again.
	electionWithin = 5 * time.Second
	leaderPoll     = 50 * time.Millisecond
	transferRetry  = 100 * time.Millisecond
)

type transferCall struct {
	To node.ID `json:"to"`
}

var transferRPC = peerrpc.Endpoint[transferCall, peerrpc.None]{
	Method: http.MethodPost, Path: Path, MaxQuestion: maxTransfer, MaxAnswer: maxTransfer,
}

// Handle routes the calls of other members.
func (c *Control) Handle(mux *peerrpc.Mux) {
	mux.Handle(transferRPC.Pattern(), transferRPC.Handler(c.transferForPeer))
}

func (c *Control) transferForPeer(ctx context.Context, _ node.ID, call transferCall) (peerrpc.None, error) {
	if err := c.cfg.Log.TransferLeadership(ctx, call.To); err != nil {
		c.cfg.Logger.Warn("leadership not handed over", "node", call.To, "err", err)
		return peerrpc.None{}, &peerrpc.Error{Status: http.StatusConflict, Text: err.Error()}
	}
	return peerrpc.None{}, nil
}

// Transfer makes a voter lead, wherever the leader is; to empty: any that is fit. It retries for a while, because
// the leader may change meanwhile and this node may not know it yet.
func (c *Control) Transfer(ctx context.Context, to node.ID) error {
	within, cancel := context.WithTimeout(ctx, electionWithin)
	defer cancel()
	for {
		err := c.tryTransfer(ctx, to)
		if _, final := errors.AsType[*adminapi.Error](err); err == nil || final || !backoff.Sleep(within, transferRetry) {
			return err
		}
	}
}

func (c *Control) tryTransfer(ctx context.Context, to node.ID) error {
	leader := c.awaitLeader(ctx)
	if leader == "" {
		return c.cfg.NoQuorum(errors.New("no leader"))
	}
	if leader == to {
		return nil
	}
	if to == "" {
		to = c.successor(leader)
	}
	switch {
	case to == "":
		return refuse("saltclusterctl members shows who votes", "no other voter can lead")
	case !slices.Contains(c.cfg.Voters(), to):
		return refuse("saltclusterctl members shows who votes", "%s is not a voter of this cluster, so it cannot lead", to)
	case !c.cfg.Alive(to):
		return refuse("saltclusterctl members shows which nodes answer", "%s does not answer, so it cannot lead", to)
	}
	if leader == c.cfg.Self {
		return c.cfg.Log.TransferLeadership(ctx, to)
	}
	_, err := transferRPC.Call(ctx, c.cfg.Client, leader, transferCall{to})
	return err
}

func refuse(hint, format string, args ...any) error {
	return adminapi.Errorf(adminapi.CodeRefused, hint, format, args...)
}

// awaitLeader waits as long as an election takes, and returns an empty ID if no leader was found.
func (c *Control) awaitLeader(ctx context.Context) node.ID {
	ctx, cancel := context.WithTimeout(ctx, electionWithin)
	defer cancel()
	for {
		if leader := c.cfg.Log.Leader(); leader != "" || !backoff.Sleep(ctx, leaderPoll) {
			return leader
		}
	}
}

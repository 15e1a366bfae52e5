package leadership

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

// handOverTimeout bounds one attempt of a node to hand its own leadership over.
const handOverTimeout = 2 * time.Second

// Log is the consensus log.
type Log interface {
	View() state.View
	Leader() node.ID // empty: none is known
	// TransferLeadership fails on every node but the leader.
	TransferLeadership(ctx context.Context, to node.ID) error
}

// Config is what a Control works with.
type Config struct {
	Self      node.ID
	ClusterID string
	UUID      string // of the cluster
	Log       Log
	Voters    func() []node.ID
	Alive     func(node.ID) bool
	Leaving   func(node.ID) bool // whether another member reports by gossip that its minions leave it
	Routes    func() router.View
	Client    peerrpc.Client
	NoQuorum  func(error) error // makes the error that operators get when no leader is found
	Logger    *slog.Logger
}

// Control hands the leadership over, on the leader and on any other member.
type Control struct{ cfg Config }

// New returns a Control.
func New(cfg Config) *Control { return &Control{cfg} }

// Resign hands the leadership to a voter that stays, if this node leads and there is one.
func (c *Control) Resign(ctx context.Context) {
	if c.cfg.Log.Leader() != c.cfg.Self {
		return
	}
	to := c.successor(c.cfg.Self)
	if to == "" {
		return
	}
	if err := c.handOver(ctx, to); err != nil {
		c.cfg.Logger.Warn("leadership not handed over", "node", to, "err", err)
	}
}

// handOver makes another voter lead instead of this node.
func (c *Control) handOver(ctx context.Context, to node.ID) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	return c.cfg.Log.TransferLeadership(ctx, to)
}

// successor returns which voter should lead after leader: one with a salt-master, else a witness. It is empty if
// there is none.
func (c *Control) successor(leader node.ID) (witness node.ID) {
	voters := c.cfg.Voters()
	for _, m := range c.cfg.Log.View().Members() {
		switch {
		case m.ID == leader || m.Draining || !slices.Contains(voters, m.ID) || !c.cfg.Alive(m.ID) || c.cfg.Leaving(m.ID):
		case !m.Witness:
			return m.ID
		case witness == "":
			witness = m.ID
		}
	}
	return witness
}

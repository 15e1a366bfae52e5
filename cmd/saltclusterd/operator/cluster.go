package operator

import (
	"context"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/ring"
)

// statsTimeout bounds the question for Stats: a member that is down must not delay the rows of the others.
const statsTimeout = time.Second

// Log is the consensus log.
type Log interface {
	View() state.View
	Status() consensus.Status
}

// Gossip is what gossip knows of other members.
type Gossip interface {
	Member(id node.ID) (gossip.Member, bool)
}

// ClusterConfig is what a Cluster works with. All fields must be set.
type ClusterConfig struct {
	Self        node.ID
	ClusterID   string
	UUID        string // of the cluster
	Fingerprint string // of the cluster's identity
	Log         Log
	Gossip      Gossip
	Client      peerrpc.Client

	Meta       func() node.Meta                                 // what this node gossips of itself
	Stats      func() Stats                                     // of this node
	Sync       func() []adminapi.SyncPart                       // what this node is not caught up with
	ClockFresh func(node.ID) bool                               // whether this node judges the clock of a member itself
	Problems   func(stats map[node.ID]Stats) []adminapi.Problem // that other capabilities find
	Usable     func() []ring.Node                               // the candidates of the ring

	// A witness has none of the following.
	Publisher   func(jid string) (node.ID, bool) // the node that published a job
	DrainWanted func() bool                      // whether an operator wants this node drained
	FillNode    func(*adminapi.Node)             // adds what the service for minions reports
	RootDirs    func() []string                  // the directories that are replicated
}

// Cluster is the running membership as operators see it.
type Cluster struct{ cfg ClusterConfig }

// NewCluster returns a Cluster.
func NewCluster(cfg ClusterConfig) *Cluster { return &Cluster{cfg} }

// Handle answers other members.
func (c *Cluster) Handle(mux *peerrpc.Mux) {
	mux.Handle(statsRPC.Pattern(), statsRPC.Handler(func(context.Context, node.ID, peerrpc.None) (Stats, error) {
		return c.cfg.Stats(), nil
	}))
}

// Ask asks a member for its Stats; this node as well.
func (c *Cluster) Ask(ctx context.Context, id node.ID) (Stats, error) {
	if id == c.cfg.Self {
		return c.cfg.Stats(), nil
	}
	s, err := statsRPC.Call(ctx, c.cfg.Client, id, peerrpc.None{})
	s.Reasons = boundReasons(s.Reasons)
	return s, err
}

// AskAll returns the Stats of the members that answer in time, and those of this node if it is one of them.
func (c *Cluster) AskAll(ctx context.Context, roster []state.Member) map[node.ID]Stats {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	ids := make([]node.ID, len(roster))
	for i, m := range roster {
		ids[i] = m.ID
	}
	return peerrpc.AskAll(ctx, ids, c.Ask).Of
}

// Revisions returns the revision that each member has applied, of those that answer in time.
func (c *Cluster) Revisions(ctx context.Context, roster []state.Member) map[node.ID]uint64 {
	out := map[node.ID]uint64{}
	for id, s := range c.AskAll(ctx, roster) {
		out[id] = s.Rev
	}
	return out
}

package native

import (
	"context"
	"net/http"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/ring"
	"saltclusterd/sidecar/router"
)

const (
	// sendTimeout bounds one batch of returns, which may be large and whose receiver has to write it.
	sendTimeout = 30 * time.Second
	maxAnswer   = 1 << 10 // bytes
)

// Log is the consensus log.
type Log interface {
	View() state.View
	CaughtUp() bool
}

// PeersConfig is what Peers needs.
type PeersConfig struct {
	Self      node.ID
	Log       Log
	Reachable func(node.ID) bool // a member is alive and serves
	Routes    func() router.View
	Masters   func() []ring.Node // the members that have a master
	Replicas  func(jid string) []node.ID
	Client    peerrpc.Client
}

// Peers are the other nodes as package returns sees them (returns.Peers).
type Peers struct{ c PeersConfig }

// NewPeers returns Peers.
func NewPeers(c PeersConfig) Peers { return Peers{c} }

// Standing implements returns.Peers. A node that does not know the roster for certain counts no node as removed.
func (p Peers) Standing(id node.ID) returns.Standing {
	v := p.c.Log.View()
	if _, member := v.Member(id); !member {
		if _, self := v.Member(p.c.Self); !self || !v.Initialized() || !p.c.Log.CaughtUp() {
			return returns.Unknown
		}
		return returns.Removed
	}
	if p.c.Reachable(id) {
		return returns.Reachable
	}
	return returns.Unreachable
}

// candidates lists nodes that can be responsible for a job: those whose masters answer, or when there are none, those
// that need none.
func (p Peers) candidates(accepts func(router.Node) bool) []ring.Node {
	var answering, native []ring.Node
	for _, n := range p.c.Routes().Nodes {
		if !accepts(n) {
			continue
		}
		candidate := ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining}
		if n.Usable() {
			answering = append(answering, candidate)
		}
		if n.Alive && n.TakesReturns {
			native = append(native, candidate)
		}
	}
	if len(answering) == 0 {
		return native
	}
	return answering
}

// Owner implements returns.Peers.
func (p Peers) Owner(jid string) (node.ID, bool) {
	return ring.Owner(jid, p.candidates(func(router.Node) bool { return true }))
}

// Successor implements returns.Peers: as Owner, without this node.
func (p Peers) Successor(jid string) (node.ID, bool) {
	return ring.Owner(jid, p.candidates(func(n router.Node) bool { return n.ID != p.c.Self && !n.Draining }))
}

// Keepers implements returns.Peers.
func (p Peers) Keepers(jid string) []node.ID {
	var nodes []ring.Node
	for _, n := range p.c.Masters() {
		if n.ID != p.c.Self && p.Standing(n.ID) == returns.Reachable {
			nodes = append(nodes, n)
		}
	}
	return ring.Ranked(jid, nodes)
}

// Copiers implements returns.Peers.
func (p Peers) Copiers(jid string) (out []node.ID) {
	replicas := p.c.Replicas(jid)
	for _, n := range p.c.Routes().Nodes {
		switch {
		case !n.Alive || !n.TakesReturns || !slices.Contains(replicas, n.ID):
		case n.ID == p.c.Self:
			out = slices.Insert(out, 0, n.ID)
		default:
			out = append(out, n.ID)
		}
	}
	return out
}

// NextKeeper implements returns.Peers: while this node is drained to leave, the ring's next for the node whose returns
// it keeps.
func (p Peers) NextKeeper(kept node.ID) (node.ID, bool) {
	self, ok := p.c.Log.View().Member(p.c.Self)
	if !ok || !self.Draining {
		return "", false
	}
	var remaining []ring.Node
	for _, n := range p.c.Routes().Nodes {
		if n.Alive && n.TakesReturns && !n.Draining && n.ID != kept && n.ID != p.c.Self {
			remaining = append(remaining, ring.Node{ID: n.ID, Weight: n.Weight})
		}
	}
	return ring.Owner(string(kept), remaining)
}

// Send implements returns.Peers.
func (p Peers) Send(ctx context.Context, to node.ID, batch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err := p.c.Client.Do(ctx, http.MethodPost, to, returns.Path, batch, maxAnswer)
	return err
}

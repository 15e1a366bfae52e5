package gossip

import (
	"context"

	"saltclusterd/gossip/node"
)

// Members returns all nodes of the roster, this one included, sorted by id. It never waits.
func (g *Gossip) Members() []Member { return g.table.listMembers() }

// Member returns one node; false: it is not on the roster.
func (g *Gossip) Member(id node.ID) (Member, bool) { return g.table.findMember(id) }

// Alive reports whether a node is on the roster and was not found dead.
func (g *Gossip) Alive(id node.ID) bool {
	m, ok := g.table.findMember(id)
	return ok && m.State == Alive
}

// Watch returns a channel that gets a value after Members may have changed, until ctx ends. Changes in quick succession
// become one; the reader asks Members for what is true now. Changes of the roster itself are not reported.
func (g *Gossip) Watch(ctx context.Context) <-chan struct{} {
	c, stop := g.table.addWaiter()
	context.AfterFunc(ctx, stop)
	return c
}

func (g *Gossip) countAlive() float64 {
	n := 0
	for _, m := range g.table.listMembers() {
		if m.State == Alive {
			n++
		}
	}
	return float64(n)
}

package daemon

import (
	"context"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
)

// levelLook is how often the leader looks whether the members understand more than they have agreed on.
const levelLook = 2 * time.Second

// keepLevel is the leader's duty: commands come to mean more when all members have said that they understand it, those that are down
// included. A member that nobody has heard of is waited for.
func (m *member) keepLevel(ctx context.Context) {
	for backoff.Sleep(ctx, levelLook) {
		agreed := m.cons.View().Level()
		if agreed >= state.Level {
			continue
		}
		least := leastLevel(m.otherMembers(), m.gossip.Member)
		if least <= agreed {
			continue
		}
		results, err := m.cons.Propose(ctx, state.LevelSet{Level: least, Audit: m.audit("all members know it")})
		if err == nil {
			err = results[0].Err()
		}
		if err != nil && ctx.Err() == nil {
			m.log.Warn("level not raised", "err", err)
		}
	}
}

// leastLevel is what this node and all others understand.
func leastLevel(others []node.ID, look func(node.ID) (gossip.Member, bool)) uint16 {
	least := uint16(state.Level)
	for _, id := range others {
		g, ok := look(id)
		if !ok {
			return 0
		}
		least = min(least, g.Meta.Level)
	}
	return least
}

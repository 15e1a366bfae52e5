package daemon

import (
	"context"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
)

// keepSeed is the leader's duty: a node that was removed, or left behind by a recovery, knows the session seed, by which it could open and make
// requests of minions. The seed changes, and the AES key with it, when raft tells that node nothing any more, for the new ones travel in the log.
// Minions that are being moved by another rotation are not hurried.
func (m *member) keepSeed(ctx context.Context) {
	for backoff.Sleep(ctx, gossipLook) {
		v := m.cons.View()
		if !v.SeedDue() || v.Level() < state.LevelSeeds || m.strangersInLog(v) || m.svc != nil && m.svc.pub.Stats().OnPrevious > 0 {
			continue
		}
		m.rotate(ctx, v, reasonRemoved)
	}
}

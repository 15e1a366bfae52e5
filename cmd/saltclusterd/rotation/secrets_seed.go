package rotation

import (
	"context"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
)

// KeepSeed is the leader's duty: a node that was removed, or left behind by a recovery, knows the session seed, by which it could open and make
// requests of minions. The seed changes, and the AES key with it, when raft tells that node nothing any more, for the new ones travel in the log.
// Minions that are being moved by another rotation are not hurried.
func (s *Secrets) KeepSeed(ctx context.Context) {
	for backoff.Sleep(ctx, gossipLook) {
		v := s.cfg.Log.View()
		if !v.SeedDue() || v.Level() < state.LevelSeeds || s.strangersInLog(v) || s.cfg.Moving() {
			continue
		}
		s.replaceEpoch(ctx, v, reasonRemoved)
	}
}

package rotation

import (
	"context"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
)

// KeepSeed is a duty of the leader. A node that was removed, or dropped by a recovery, has the session seed and could
// read and forge requests of minions. KeepSeed replaces the seed and the AES key once raft does not send the log to
// that node any more, and after an earlier rotation has moved its minions.
func (s *Secrets) KeepSeed(ctx context.Context) {
	for backoff.Poll(ctx, leaderInterval) {
		v := s.cfg.Log.View()
		if !v.SeedDue() || v.Level() < state.LevelSeeds || s.sendsLogToRemoved(v) || s.cfg.Moving() {
			continue
		}
		s.replaceEpoch(ctx, v, reasonRemoved)
	}
}

package rotation

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	// leaderInterval is the pause between two checks of the leader whether the gossip key or the seed has to be
	// replaced.
	leaderInterval = 500 * time.Millisecond
	// gossipGrace is how long the old key is accepted after a change: a member without the new one would seem to have
	// failed.
	gossipGrace = 5 * time.Second
)

// KeepGossipKey is a duty of the leader. It replaces the gossip key after a removal, once raft does not send the log
// to the removed node any more: the new key is in the log.
func (s *Secrets) KeepGossipKey(ctx context.Context) {
	for backoff.Poll(ctx, leaderInterval) {
		v := s.cfg.Log.View()
		var cmd state.Command
		switch keys := v.GossipKeys(); {
		case v.GossipDue() && !s.sendsLogToRemoved(v):
			cmd = state.GossipKeyAdd{Expect: keys[0].N, Key: newGossipKey(), Audit: state.Audit{Cause: "member removed"}}
		case len(keys) > 1 && s.membersHaveGossipKey(ctx, v):
			cmd = state.GossipKeyDrop{N: keys[0].N, Audit: state.Audit{Cause: "member removed"}}
		default:
			continue
		}
		if results, err := s.cfg.Log.Propose(ctx, cmd); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("gossip key not changed", "err", err)
		} else if err == nil && results[0].Err() != nil && !state.IsConflict(results[0].Err()) {
			s.cfg.Logger.Error("gossip key not changed", "err", results[0].Err())
		}
	}
}

// sendsLogToRemoved tells whether raft still sends the log to a node that is not on the roster.
func (s *Secrets) sendsLogToRemoved(v state.View) bool {
	st := s.cfg.Log.Status()
	for _, id := range slices.Concat(st.Voters, st.Learners) {
		if _, ok := v.Member(id); !ok {
			return true
		}
	}
	return false
}

// membersHaveGossipKey tells whether all members that are up have the primary key, or had the time to get it.
func (s *Secrets) membersHaveGossipKey(ctx context.Context, v state.View) bool {
	key := v.GossipKeys()[0]
	if since := s.cfg.Now().Sub(time.UnixMilli(key.At)); since > gossipGrace || since < 0 {
		return true
	}
	revisions := s.cfg.Revisions(ctx, v.Members())
	for _, mem := range v.Members() {
		if rev, ok := revisions[mem.ID]; s.cfg.Alive(mem.ID) && (!ok || rev < key.Rev) {
			return false
		}
	}
	return true
}

// rotateGossipKey replaces the gossip key and waits until the leader has dropped the old one.
func (s *Secrets) rotateGossipKey(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	now := s.cfg.Log.View().GossipKeys()[0].N
	if r.DryRun {
		return adminapi.Outcome{
			Message: fmt.Sprintf("gossip key number %d would replace number %d", now+1, now),
			Next:    s.cfg.describeDown(laterByLog),
		}, nil
	}
	p("rotate", "asking the cluster for a new gossip key")
	add := state.GossipKeyAdd{Expect: now, Key: newGossipKey(), Audit: state.Audit{Cause: "rotate"}}
	if _, err := s.cfg.Decide(ctx, add); err != nil {
		return adminapi.Outcome{}, err
	}
	p("rotate", "distributing it; the old key will be refused afterwards")
	waiting, cancel := context.WithTimeout(ctx, completedWithin)
	defer cancel()
	for len(s.cfg.Log.View().GossipKeys()) > 1 || s.cfg.Log.View().GossipKeys()[0].N <= now {
		if !backoff.Sleep(waiting, pollInterval) {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeTimeout, "the leader continues on its own",
				"gossip key number %d is in force, but the former key is still accepted", now+1)
		}
	}
	return adminapi.Outcome{
		Message: fmt.Sprintf("only gossip key number %d is in force", now+1), Next: s.cfg.describeDown(laterByLog),
	}, nil
}

func newGossipKey() state.Secret {
	key := make([]byte, gossip.KeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return state.NewSecret(key)
}

package daemon

import (
	"context"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
)

const (
	// gossipLook is how often the leader looks whether the gossip key must change.
	gossipLook = 500 * time.Millisecond
	// gossipGrace is how long the old key is heard after a change: a member that has not got the new one would seem dead.
	gossipGrace = 5 * time.Second
)

// keepGossipKey is the leader's duty: who was removed must not be heard. The key changes when raft tells the removed node
// nothing any more, for the new one travels in the log.
func (m *member) keepGossipKey(ctx context.Context) {
	for backoff.Sleep(ctx, gossipLook) {
		v := m.cons.View()
		var cmd state.Command
		switch keys := v.GossipKeys(); {
		case v.GossipDue() && !m.strangersInLog(v):
			cmd = state.GossipKeyAdd{Expect: keys[0].N, Key: state.NewSecret(randomBytes(membership.GossipKeySize)), Audit: m.audit("member removed")}
		case len(keys) > 1 && m.haveGossipKey(ctx, v):
			cmd = state.GossipKeyDrop{N: keys[0].N, Audit: m.audit("member removed")}
		default:
			continue
		}
		if results, err := m.cons.Propose(ctx, cmd); err != nil && ctx.Err() == nil {
			m.log.Warn("gossip key not changed", "err", err)
		} else if err == nil && results[0].Err() != nil && !state.IsConflict(results[0].Err()) {
			m.log.Error("gossip key not changed", "err", results[0].Err())
		}
	}
}

// strangersInLog says whether raft still sends the log to somebody who is off the roster.
func (m *member) strangersInLog(v state.View) bool {
	st := m.cons.Status()
	for _, id := range slices.Concat(st.Voters, st.Learners) {
		if _, ok := v.Member(id); !ok {
			return true
		}
	}
	return false
}

// haveGossipKey says whether the members that are there know the primary key, or had the time to.
func (m *member) haveGossipKey(ctx context.Context, v state.View) bool {
	key := v.GossipKeys()[0]
	if since := time.Since(time.UnixMilli(key.At)); since > gossipGrace || since < 0 {
		return true
	}
	stats := m.allStats(ctx, v.Members())
	for _, mem := range v.Members() {
		if s, ok := stats[mem.ID]; m.alive(mem.ID) && (!ok || s.Rev < key.Rev) {
			return false
		}
	}
	return true
}

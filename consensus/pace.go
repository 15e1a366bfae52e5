package consensus

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
	"saltclusterd/signal"
)

// Raft sends heartbeats a tenth to a fifth of its heartbeat timeout apart, and a follower stands for election after one
// to three timeouts. As long as all members answer, a node has the timeout Timing.IdleHeartbeat, which makes heartbeats
// rare. It returns to Timing.Heartbeat when a leader is silent for Timing.Silence, or a member does not answer a
// heartbeat: raft then checks at once how old the last contact is. A failover takes as long as with Timing.Heartbeat
// all the time, or less, and a member that is back is noticed as soon. A vote needs a majority without a leader
// (pre-vote), so a node that returns to the short timeout needlessly disturbs no others.

const (
	// DefaultTolerance is how long members wait for a heartbeat that do not say it: all before this setting existed.
	DefaultTolerance = 500 * time.Millisecond
	// leaderPace is how often a leader looks whether it may send fewer heartbeats.
	leaderPace = 2 * time.Second
	// failedFor is how long a member that has not answered a heartbeat counts as failing, unless it answers.
	failedFor = 5 * time.Second
)

// Tolerance is how long a node waits for a heartbeat of its leader. Others are told, see Config.Tolerance.
func (t Timing) Tolerance() time.Duration { return t.Silence }

// keepPace sets raft's timeouts until ctx ends.
func (n *Node) keepPace(ctx context.Context, r *raft.Raft) {
	next := time.NewTimer(n.cfg.Timing.Silence)
	defer next.Stop()
	for was := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-n.repace:
		case <-next.C:
		}
		calm, again := n.pace(r)
		next.Reset(again)
		if calm == was {
			continue
		}
		if err := r.ReloadConfig(n.paceConfig(r, calm)); err != nil {
			n.log.Warn("raft's timeouts not changed", "calm", calm, "err", err)
			continue
		}
		was = calm
	}
}

// paceConfig returns raft's settings with the timeouts of one of both paces.
func (n *Node) paceConfig(r *raft.Raft, calm bool) raft.ReloadableConfig {
	c := r.ReloadableConfig()
	c.HeartbeatTimeout, c.ElectionTimeout = n.cfg.Timing.Heartbeat, n.cfg.Timing.Election
	if calm {
		c.HeartbeatTimeout, c.ElectionTimeout = n.cfg.Timing.IdleHeartbeat, n.cfg.Timing.IdleHeartbeat
	}
	return c
}

// pace reports whether the timeouts may be long now, and when to look again.
func (n *Node) pace(r *raft.Raft) (calm bool, again time.Duration) {
	t := n.cfg.Timing
	switch r.State() {
	case raft.Leader:
		return !n.trans.reach.isFailing(time.Now()) && n.allTolerate(t.IdleHeartbeat/5), leaderPace
	case raft.Follower:
		// Not the same for all, so that one stands for election before the others.
		limit := t.Silence + rand.N(t.Silence*2/5)
		if left := limit - time.Since(r.LastContact()); left > 0 {
			return true, left
		}
	}
	return false, t.Silence
}

// allTolerate reports whether heartbeats may be so far apart: for each other member that is half of what it waits at
// most.
func (n *Node) allTolerate(apart time.Duration) bool {
	for _, m := range n.View().Members() {
		if m.ID != n.cfg.ID && n.cfg.Tolerance(m.ID) < apart+apart/2 {
			return false
		}
	}
	return true
}

// checkPace has keepPace look now.
func (n *Node) checkPace() { signal.Send(n.repace) }

// defaultTolerance is Config.Tolerance when there is none.
func defaultTolerance(node.ID) time.Duration { return DefaultTolerance }

package consensus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

const (
	changeWait   = 5 * time.Second  // for raft to accept a change of configuration
	transferRest = 10 * time.Second // after a hand-over that failed
)

// reconciler is the leader's memory between two looks; it lives for one term.
type reconciler struct {
	n     *Node
	raft  *raft.Raft
	learn map[node.ID]*progress
	dead  map[node.ID]time.Time // voters that are not alive, since when
	// The configuration was what it should be at the last look.
	nothing bool
	rest    time.Time // no attempt to hand the leadership over before
}

// progress is how a learner keeps up.
type progress struct {
	last, applied uint64    // where we were at the last look
	asked         bool      // last and applied are set
	since         time.Time // caught up at every look since then; zero: not
}

func newReconciler(n *Node, r *raft.Raft) *reconciler {
	return &reconciler{n: n, raft: r, learn: map[node.ID]*progress{}, dead: map[node.ID]time.Time{}}
}

// recordStats takes in what a learner said. A learner keeps up if it has, at each
// look, what the leader had at the look before, and has all that is not in the log.
func (p *progress) recordStats(now time.Time, s PeerStats, err error, last, applied uint64) {
	switch {
	case err != nil || s.Syncing || (p.asked && (s.LastIndex < p.last || s.Applied < p.applied)):
		p.since = time.Time{}
	case p.asked && p.since.IsZero():
		p.since = now
	}
	p.last, p.applied, p.asked = last, applied, true
}

// isSettled reports whether there is nothing to wait for but a change of the state, or of who is alive.
func (c *reconciler) isSettled() bool { return c.nothing && len(c.learn) == 0 && len(c.dead) == 0 }

// observeLearners asks the learners how far they are.
func (c *reconciler) observeLearners(ctx context.Context) {
	voters, learners := readServers(c.raft)
	c.noteDeadVoters(voters)
	current := make(map[node.ID]*progress, len(learners))
	for _, id := range learners {
		if current[id] = c.learn[id]; current[id] == nil {
			current[id] = &progress{}
		}
	}
	c.learn = current
	ctx, cancel := context.WithTimeout(ctx, c.n.cfg.Timing.Attempt)
	defer cancel()
	var wg sync.WaitGroup
	for id, p := range current {
		wg.Go(func() {
			last, applied := c.raft.CommitIndex(), c.n.View().Index()
			s, err := c.n.cfg.Stats(ctx, id)
			p.recordStats(time.Now(), s, err, last, applied)
		})
	}
	wg.Wait()
}

// noteDeadVoters notes since when voters are dead. A new leader counts anew.
func (c *reconciler) noteDeadVoters(voters []node.ID) {
	dead := map[node.ID]time.Time{}
	for _, id := range voters {
		if id == c.n.cfg.ID || c.n.cfg.Alive(id) {
			continue
		}
		if dead[id] = c.dead[id]; dead[id].IsZero() {
			dead[id] = time.Now()
		}
	}
	c.dead = dead
}

// applyChanges acts until nothing is left to do or something fails; the next look
// tries again.
func (c *reconciler) applyChanges(ctx context.Context) {
	for ctx.Err() == nil {
		s, prev, err := c.readSituation()
		if err != nil {
			return // leadership is on its way out
		}
		a := decideChange(s)
		c.nothing = a.move == moveNone
		if a.move == moveNone || a.move == moveTransfer && time.Now().Before(c.rest) {
			return
		}
		if a.move == moveRemove && s.alive(a.id) {
			c.letKnow(ctx, a.id)
		}
		if err := c.applyAction(a, prev); err != nil {
			c.rest = time.Now().Add(transferRest)
			c.n.log.Warn("changing the voters failed", "op", string(a.move), "node", a.id, "err", err)
			return
		}
		c.n.m.countMove(a.move)
		c.n.log.Info("voters changed", "op", string(a.move), "node", a.id)
		if a.move == moveTransfer {
			return
		}
	}
}

func (c *reconciler) readSituation() (situation, uint64, error) {
	f := c.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return situation{}, 0, err
	}
	t := c.n.cfg.Timing
	s := situation{
		self: c.n.cfg.ID, roster: c.n.View().Members(), alive: c.n.cfg.Alive,
		ready: map[node.ID]bool{}, lost: map[node.ID]bool{}, maxVoters: c.n.cfg.MaxVoters,
	}
	for _, sv := range f.Configuration().Servers {
		s.servers = append(s.servers, server{id: node.ID(sv.ID), voter: sv.Suffrage == raft.Voter})
	}
	for id, p := range c.learn {
		s.ready[id] = !p.since.IsZero() && time.Since(p.since) >= t.Stable && s.alive(id)
	}
	for id, since := range c.dead {
		s.lost[id] = time.Since(since) >= c.n.cfg.VoterTimeout
	}
	return s, f.Index(), nil
}

// letKnow gives a living server the time to read in the log that it was taken
// off the roster; once raft has removed it, no member tells it anything. It ends
// at once when the server does not answer, which may be because its
// certificate is refused already.
func (c *reconciler) letKnow(ctx context.Context, id node.ID) {
	ctx, cancel := context.WithTimeout(ctx, c.n.cfg.Timing.Attempt)
	defer cancel()
	index := c.n.View().Index()
	_ = c.n.waitUntil(ctx, func() bool {
		s, err := c.n.cfg.Stats(ctx, id)
		return err != nil || s.Applied >= index
	})
}

// applyAction carries out one action. prev makes raft refuse it when the configuration
// has changed since we looked.
func (c *reconciler) applyAction(a action, prev uint64) error {
	id := raft.ServerID(a.id)
	var f raft.Future
	switch a.move {
	case moveTransfer:
		f = c.raft.LeadershipTransferToServer(id, addrOf(a.id))
	case moveRemove:
		f = c.raft.RemoveServer(id, prev, changeWait)
	case moveDemote:
		f = c.raft.DemoteVoter(id, prev, changeWait)
	case moveLearn:
		f = c.raft.AddNonvoter(id, addrOf(a.id), prev, changeWait)
	case movePromote:
		f = c.raft.AddVoter(id, addrOf(a.id), prev, changeWait)
	default:
		return fmt.Errorf("no such move %q", a.move)
	}
	return awaitFuture(f, c.n.batch.ended)
}

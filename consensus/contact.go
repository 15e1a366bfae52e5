package consensus

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// contact is what a follower knows of its distance to the leader. Raft's own
// commit index will not do: on a node that lags it is at most what that node
// already has.
type contact struct {
	mu      sync.Mutex
	target  uint64    // the leader's state when asked
	asked   time.Time // when that was
	open    bool      // target is not reached yet
	reached time.Time // time of the newest question whose target we reached
	heard   time.Time // the newest question that a leader answered
	lacking time.Time // asked, or when a leader was found again after that
}

// noteAnswer notes what the leader said, unless an older target is still open:
// then that one counts, and its age shows how far behind we are. recent is how
// old an answer may be for a leader to be there.
func (c *contact) noteAnswer(asked time.Time, target, have uint64, recent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkTarget(have)
	if c.open && asked.Sub(c.heard) > recent {
		c.lacking = asked // the time without a leader does not count
	}
	c.heard = asked
	if !c.open {
		c.target, c.asked, c.lacking, c.open = target, asked, asked, true
		c.checkTarget(have)
	}
}

// behindFor returns for how long a decision has been known that is not held, while a leader has answered within recent.
// Zero means that none is known, or that no leader is there to catch up with.
func (c *contact) behindFor(now time.Time, have uint64, recent time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkTarget(have)
	if !c.open || now.Sub(c.heard) > recent {
		return 0
	}
	return max(now.Sub(c.lacking), time.Nanosecond)
}

func (c *contact) checkTarget(have uint64) {
	if c.open && have >= c.target {
		c.open, c.reached = false, c.asked
	}
}

// hasAnswer says whether the leader has ever said how far it is.
func (c *contact) hasAnswer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asked.IsZero()
}

// stateAge is how old the newest leader's state is that we hold, and whether we
// ever held one.
func (c *contact) stateAge(now time.Time, have uint64) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkTarget(have)
	return now.Sub(c.reached), !c.reached.IsZero()
}

// keepContact asks the leader again and again how far it is, and at once when there is a new one. It calls
// Config.Standing when the answer to CaughtUp has changed.
func (n *Node) keepContact(ctx context.Context, r *raft.Raft) {
	led := make(chan raft.Observation, 1)
	observer := raft.NewObserver(led, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	changed := n.Watch(ctx)
	next := time.NewTimer(0)
	defer next.Stop()
	caughtUp := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-led:
			next.Reset(0)
		case <-next.C:
			n.askLeader(ctx, r)
			n.m.observeRaft(n.LocalStats())
			pause := n.cfg.Timing.Contact
			if !n.contact.hasAnswer() && r.State() != raft.Leader { // a node that starts waits for that
				pause /= 10
			}
			next.Reset(pause)
		}
		if is := n.CaughtUp(); is != caughtUp {
			caughtUp = is
			n.cfg.Standing()
		}
	}
}

// askLeader asks the leader how far it is. A node that raft knows no leader for asks the other members, one each time:
// it may be cut off, or its disk may not take the term of a leader that all others follow.
func (n *Node) askLeader(ctx context.Context, r *raft.Raft) {
	if n.leads(r) {
		return
	}
	leader := n.Leader()
	if leader == "" {
		leader = n.nextAsked()
	}
	if leader == "" || leader == n.cfg.ID {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	asked := time.Now()
	s, err := n.cfg.Stats(ctx, leader)
	if err != nil || !s.Serving {
		return
	}
	n.contact.noteAnswer(asked, s.Applied, n.View().Index(), n.cfg.Timing.Recent)
}

// nextAsked returns another member each time, those that gossip thinks alive.
func (n *Node) nextAsked() node.ID {
	var others []node.ID
	for _, m := range n.View().Members() {
		if m.ID != n.cfg.ID && n.cfg.Alive(m.ID) {
			others = append(others, m.ID)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return others[int(n.asked.Add(1)%uint64(len(others)))]
}

// Behind returns for how long this node has known that the cluster has decided something that it does not hold, while a
// leader is there to catch up with. Zero means that it knows of nothing. A node without a leader does not know.
func (n *Node) Behind() time.Duration {
	r := n.raft.Load()
	if r == nil || n.isStopped() || n.leads(r) {
		return 0
	}
	return n.contact.behindFor(time.Now(), n.View().Index(), n.cfg.Timing.Recent)
}

// CaughtUp tells whether this node belongs to the cluster and holds everything
// the leader had in its state not longer than Timing.Recent ago.
func (n *Node) CaughtUp() bool {
	r := n.raft.Load()
	v := n.View()
	if r == nil || n.isStopped() {
		return false
	}
	if _, ok := v.Member(n.cfg.ID); !ok {
		return false
	}
	if n.leads(r) {
		return n.Serving()
	}
	age, ever := n.contact.stateAge(time.Now(), v.Index())
	return ever && age <= n.cfg.Timing.Recent
}

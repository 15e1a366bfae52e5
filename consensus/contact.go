package consensus

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
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
}

// answer notes what the leader said, unless an older target is still open:
// then that one counts, and its age shows how far behind we are.
func (c *contact) answer(asked time.Time, target, have uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(have)
	if !c.open {
		c.target, c.asked, c.open = target, asked, true
		c.look(have)
	}
}

func (c *contact) look(have uint64) {
	if c.open && have >= c.target {
		c.open, c.reached = false, c.asked
	}
}

// known says whether the leader has ever said how far it is.
func (c *contact) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asked.IsZero()
}

// age is how old the newest leader's state is that we hold, and whether we
// ever held one.
func (c *contact) age(now time.Time, have uint64) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(have)
	return now.Sub(c.reached), !c.reached.IsZero()
}

// keepContact asks the leader again and again how far it is.
func (n *Node) keepContact(ctx context.Context, r *raft.Raft) {
	for {
		n.askLeader(ctx, r)
		n.m.observeRaft(n.LocalStats())
		pause := n.cfg.Timing.Contact
		if !n.contact.known() { // whoever starts waits for that
			pause /= 10
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

func (n *Node) askLeader(ctx context.Context, r *raft.Raft) {
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID || r.State() == raft.Leader {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	asked := time.Now()
	s, err := n.cfg.Stats(ctx, leader)
	if err != nil || !s.Serving {
		return
	}
	n.contact.answer(asked, s.Applied, n.View().Index())
}

// CaughtUp tells whether this node belongs to the cluster and holds everything
// the leader had in its state not longer than Timing.Recent ago.
func (n *Node) CaughtUp() bool {
	r := n.raft.Load()
	v := n.View()
	if r == nil || n.stopped() {
		return false
	}
	if _, ok := v.Member(n.cfg.ID); !ok {
		return false
	}
	if r.State() == raft.Leader {
		return n.Serving()
	}
	age, ever := n.contact.age(time.Now(), v.Index())
	return ever && age <= n.cfg.Timing.Recent
}

package consensus

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// timeout is raft's heartbeat timeout of a node.
func (n *Node) timeout() time.Duration { return n.raft.Load().ReloadableConfig().HeartbeatTimeout }

// calm returns a condition: every node has the long timeout.
func calm(c *cluster) func() (bool, string) {
	return func() (bool, string) {
		for id, n := range c.nodes {
			if n.timeout() != n.cfg.Timing.IdleHeartbeat {
				return false, string(id) + " has the short timeout"
			}
		}
		return true, ""
	}
}

// Timeouts are long while all members answer, and short as soon as one does not.
func TestPace(t *testing.T) {
	c := form(t, 3, func(cfg *Config) {
		cfg.Tolerance = func(node.ID) time.Duration { return time.Second }
	})
	c.eventually("long timeouts", calm(c))
	old := c.leader()
	c.f.split(old.cfg.ID)
	c.eventually("a leader of the others", func() (bool, string) {
		for id, n := range c.nodes {
			if n != old && n.Serving() {
				return n.timeout() == n.cfg.Timing.Heartbeat, string(id) + " has the long timeout and a member that is cut off"
			}
		}
		return false, "there is none"
	})
	c.eventually("short timeouts of the node that is cut off", func() (bool, string) {
		return old.timeout() == old.cfg.Timing.Heartbeat, ""
	})
	c.f.heal()
	c.eventually("long timeouts", calm(c))
}

// A leader keeps to short timeouts as long as a member may have those of an earlier version.
func TestPace_OlderMember(t *testing.T) {
	c := form(t, 3, func(cfg *Config) {
		cfg.Tolerance = func(id node.ID) time.Duration {
			if id == "m2" {
				return cfg.Timing.IdleHeartbeat / 5 // as far apart as heartbeats may be
			}
			return time.Second
		}
	})
	l := c.leader()
	if l.cfg.ID == "m2" {
		c.eventually("long timeouts of a leader whose members all tolerate them", calm(c))
		return
	}
	c.eventually("short timeouts of the leader", func() (bool, string) {
		return l.timeout() == l.cfg.Timing.Heartbeat, ""
	})
	for id, n := range c.nodes {
		if n == l {
			continue
		}
		c.eventually("long timeouts of a follower", func() (bool, string) {
			return n.timeout() == n.cfg.Timing.IdleHeartbeat, string(id)
		})
	}
	if calm, again := l.pace(l.raft.Load()); calm || again != leaderPace {
		if l.raft.Load().State() != raft.Leader {
			t.Skip("the machine was too busy for one leader to stay")
		}
		t.Errorf("calm %v, again after %v; want short timeouts", calm, again)
	}
}

func TestReach_Failing(t *testing.T) {
	told := 0
	r := newReach(nil, func() { told++ })
	now := time.Now()
	if r.isFailing(now) {
		t.Error("fails before the first heartbeat")
	}
	r.noteFailed("m2")
	r.noteFailed("m2")
	if !r.isFailing(now) || told != 1 {
		t.Errorf("failing %v, told %d times, want once", r.isFailing(now), told)
	}
	r.noteAnswered("m2")
	if r.isFailing(now) {
		t.Error("fails after an answer")
	}
	r.noteFailed("m3") // and is removed from the cluster
	if r.isFailing(time.Now().Add(failedFor + time.Second)) {
		t.Error("fails long after the last heartbeat")
	}
}

package consensus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
)

func never() bool { return false }

// TestHangingDisk has the disk of the leader not answer: another node leads, and the former leader knows what it is
// until its disk answers.
func TestHangingDisk(t *testing.T) {
	stuck := make(chan struct{})
	var at atomic.Pointer[string] // the node whose disk hangs
	c := form(t, 3, func(cfg *Config) {
		id := string(cfg.ID)
		cfg.Timing.Hang = 500 * time.Millisecond
		cfg.storing = func() {
			if is := at.Load(); is != nil && *is == id {
				<-stuck
			}
		}
	})
	old := c.leader()
	r := c.must(old, accept("evil"))
	c.converge()
	id := string(old.cfg.ID)
	at.Store(&id)
	answered := false
	answer := func() {
		if at.Store(nil); !answered {
			answered = true
			close(stuck)
		}
	}
	defer answer()
	go func() { _, _ = old.Propose(t.Context(), accept("waits")) }()
	c.eventually("another node leads", func() (bool, string) {
		for _, n := range c.nodes {
			if n != old && n.Serving() {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", old.Status())
	})
	for _, n := range c.nodes {
		if n != old {
			c.must(n, state.KeySet{ID: "evil", State: state.KeyDeleted, BaseRev: r[0].Rev})
			break
		}
	}
	c.eventually("the former leader knows that it lacks something", func() (bool, string) {
		s := old.Status()
		return s.Role != RoleLeader && s.Behind > 0 && !s.CaughtUp && !old.Serving() && old.LogError() != nil,
			fmt.Sprintf("%+v, %v", s, old.LogError())
	})
	answer()
	c.eventually("the former leader has caught up", func() (bool, string) {
		k, ok := old.View().Key("evil")
		s := old.Status()
		return (!ok || k.State == state.KeyDeleted) && s.CaughtUp && s.Role == RoleFollower, fmt.Sprintf("%+v", s)
	})
	check.NoError(t, old.LogError())
	c.converge()
}

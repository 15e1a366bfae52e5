package consensus

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
)

func never() bool { return false }

// TestHangingDisk has the disk of the leader not answer: another node leads, and the former leader knows what it is
// until its disk answers. Nobody who asks it before it knows waits beyond a deadline.
func TestHangingDisk(t *testing.T) {
	stuck := make(chan struct{})
	var at atomic.Pointer[string] // the node whose disk hangs
	var hangs atomic.Bool
	c := form(t, 3, func(cfg *Config) {
		id := string(cfg.ID)
		cfg.Timing.Hang = 500 * time.Millisecond
		cfg.storing = func() {
			if is := at.Load(); is != nil && *is == id {
				hangs.Store(true)
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
	c.eventually("the disk hangs", func() (bool, string) { return hangs.Load(), "" })
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	read, handed := make(chan error, 1), make(chan error, 1)
	go func() { read <- old.Barrier(short) }()
	go func() { handed <- old.TransferLeadership(short, "") }()
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
	c.eventually("nothing waits for the disk that has a deadline", func() (bool, string) {
		return len(read) == 1 && len(handed) == 1, fmt.Sprintf("read %d, handed over %d", len(read), len(handed))
	})
	if <-handed == nil {
		t.Error("the leadership was handed over without the disk")
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

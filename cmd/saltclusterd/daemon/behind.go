package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"saltclusterd/sidecar/health"
)

const (
	// behindOut is how long a node has known that it lacks something before load balancers are told to leave it alone.
	behindOut = 10 * time.Second
	// behindBack is how long it has to lack nothing before they are told to come back.
	behindBack = 5 * time.Second
)

// behindGate decides when a node that is behind the cluster is taken out of load balancers. It holds a decision for a
// while, so that a disk with some free pages now and then does not make them change their minds with each entry.
type behindGate struct {
	mu   sync.Mutex
	out  bool
	well time.Time // since when nothing is lacking; zero: something is
}

// judge takes for how long the node has known that it lacks something, and returns whether it is to be left alone.
func (g *behindGate) judge(now time.Time, behind time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case behind > 0:
		g.well = time.Time{}
		g.out = g.out || behind >= behindOut
	case g.well.IsZero():
		g.well = now
	}
	if g.out && !g.well.IsZero() && now.Sub(g.well) >= behindBack {
		g.out = false
	}
	return g.out
}

// checkBehind fails when this node knows that it lacks something that the cluster has decided. It only warns when no other
// node serves minions: this one refuses sign-ins then, and no load balancer can do better.
func (s *service) checkBehind(context.Context) health.Result {
	behind := s.m.cons.Behind()
	if !s.m.d.behind.judge(time.Now(), behind) {
		return fine
	}
	r := health.Result{
		Level:  health.Fail,
		Reason: "this node lacks what the cluster has decided, and does not decide who may sign in",
		Hint:   "the leader answers and its entries do not arrive here: journalctl -u saltclusterd, and the network on the peer port",
	}
	if behind > 0 {
		r.Reason = fmt.Sprintf("this node has lacked what the cluster has decided for %s, and does not decide who may sign in", behind.Round(time.Second))
	}
	if err := s.m.cons.LogError(); err != nil {
		r.Hint = fmt.Sprintf("its log cannot be written (%v): make room, df -h %s", err, s.m.d.cfg.Paths.StateDir)
	}
	if !s.m.routes().OthersServe(s.m.d.id) {
		r.Level = health.Warn
	}
	return r
}

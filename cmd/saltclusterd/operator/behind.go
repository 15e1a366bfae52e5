package operator

import (
	"fmt"
	"sync"
	"time"

	"saltclusterd/sidecar/health"
)

const (
	// behindOut is how long a node has known that it lacks something before load balancers stop using it.
	behindOut = 10 * time.Second
	// behindBack is how long it has to lack nothing before they use it again.
	behindBack = 5 * time.Second
)

// BehindGate decides when a node that is behind the cluster is taken out of load balancers. It holds a decision for a
// while, so that a disk that has free pages only now and then does not change the decision with each entry.
type BehindGate struct {
	mu   sync.Mutex
	out  bool
	well time.Time // since when nothing is lacking; zero: something is
}

// isOut takes for how long the node has known that it lacks something, and returns whether it is taken out.
func (g *BehindGate) isOut(now time.Time, behind time.Duration) bool {
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

// Behind is what a node knows of its lag.
type Behind struct {
	For         time.Duration // for how long it has known that it lacks something; zero: it does not
	LogError    error         // why its log cannot be written; nil: it can
	StateDir    string
	OthersServe func() bool // whether other nodes serve minions
}

// Check fails when this node knows that it lacks something that the cluster has decided. It only warns when no other
// node serves minions: this one refuses sign-ins then, and no load balancer can do better.
func (g *BehindGate) Check(b Behind) health.Result {
	if !g.isOut(time.Now(), b.For) {
		return fine
	}
	r := health.Result{
		Level:  health.Fail,
		Reason: "this node lacks decisions of the cluster, and does not decide about sign-ins",
		Hint: "the leader answers and its entries do not arrive here: journalctl -u saltclusterd, " +
			"and the network on the peer port",
	}
	if b.For > 0 {
		r.Reason = fmt.Sprintf("this node has lacked decisions of the cluster for %s, and does not decide about sign-ins", b.For.Round(time.Second))
	}
	if b.LogError != nil {
		r.Hint = fmt.Sprintf("its log cannot be written (%v): make room in or repair the disk of %s; df -h %[2]s, dmesg", b.LogError,
			b.StateDir)
	}
	if !b.OthersServe() {
		r.Level = health.Warn
	}
	return r
}

package signin

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Sign-ins that peers hand over, because their masters cannot take them, get a part of this node only, whatever the
// peers do.
const (
	// maxRelayed bounds those that wait or are being answered: half of what the master is asked at a time.
	maxRelayed = maxAsking / 2
	// relayedRate and relayedBurst bound how many come, per second and at once.
	relayedRate  = 200
	relayedBurst = 1000
)

// relayLimit lets in what peers hand over.
type relayLimit struct {
	now func() time.Time

	mu     sync.Mutex
	rate   *rate.Limiter
	inside int
}

func newRelayLimit(now func() time.Time) *relayLimit {
	return &relayLimit{now: now, rate: rate.NewLimiter(relayedRate, relayedBurst)}
}

// admitRelayed says whether there is room, and takes it until the sign-in has come to an end.
func (g *relayLimit) admitRelayed(r *Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= maxRelayed || !g.rate.AllowN(g.now(), 1) {
		return false
	}
	g.inside++
	reply, drop := r.Reply, r.Drop
	r.Reply = func(b []byte) { g.releaseRelayed(); reply(b) }
	r.Drop = func() { g.releaseRelayed(); drop() }
	return true
}

func (g *relayLimit) releaseRelayed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

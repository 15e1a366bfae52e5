package signin

import (
	"sync"
	"time"
)

// Sign-ins that peers hand over, because their masters cannot take them, get a part of this node only, whatever the
// peers do.
const (
	// maxGuests bounds those that wait or are being answered: half of what the master is asked at a time.
	maxGuests = maxAsking / 2
	// guestRate and guestBurst bound how many come, per second and at once.
	guestRate  = 200
	guestBurst = 1000
)

// guests lets in what peers hand over.
type guests struct {
	now func() time.Time

	mu     sync.Mutex
	rate   bucket
	inside int
}

func newGuests(now func() time.Time) *guests {
	return &guests{now: now, rate: bucket{rate: guestRate, room: guestBurst, tokens: guestBurst, at: now()}}
}

// admitGuest says whether there is room, and takes it until the sign-in has come to an end.
func (g *guests) admitGuest(r *Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate.refillBucket(g.now())
	if g.inside >= maxGuests || g.rate.tokens < 1 {
		return false
	}
	g.rate.tokens--
	g.inside++
	reply, drop := r.Reply, r.Drop
	r.Reply = func(b []byte) { g.leaveGuest(); reply(b) }
	r.Drop = func() { g.leaveGuest(); drop() }
	return true
}

func (g *guests) leaveGuest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

package fanout

import (
	"sync"
	"time"
)

// refusedFor is how long it counts that a peer's host refused a connection. A link is retried every maxBackoff.
const refusedFor = 2*maxBackoff + time.Second

// refusals is how a peer's host answers attempts to reach the peer.
type refusals struct {
	mu          sync.Mutex
	first, last time.Time // the first and the last refusal of the latest series without a break
	other       bool      // the last attempt ended in another way
}

func (r *refusals) noteResult(refused bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused {
		if r.other || now.Sub(r.last) >= refusedFor {
			r.first = now
		}
		r.last = now
	}
	r.other = !refused
}

// refusesNow reports whether connections to the peer are refused, because no process listens there.
func (r *refusals) refusesNow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.other && now.Sub(r.last) < refusedFor
}

// refusedSince is when the latest series of refusals began; zero: there was none.
func (r *refusals) refusedSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

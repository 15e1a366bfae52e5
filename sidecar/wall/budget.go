package wall

import (
	"sync"
	"time"
)

// budgetSeconds is how many seconds' worth of a budget may be spent at once.
const budgetSeconds = 20

// bucket is what a minion may still send.
type bucket struct {
	mu       sync.Mutex
	at       time.Time
	requests float64
	bytes    float64
}

// take spends one request of that many bytes; false: there is not enough left. A request that is larger than all that a minion may
// spend at once passes when nothing was spent.
func (b *bucket) take(now time.Time, rate, bytes float64, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.requests, b.bytes = rate*budgetSeconds, bytes*budgetSeconds
	} else if dt := now.Sub(b.at).Seconds(); dt > 0 {
		b.requests = min(b.requests+dt*rate, rate*budgetSeconds)
		b.bytes = min(b.bytes+dt*bytes, bytes*budgetSeconds)
	}
	b.at = now
	need := min(float64(size), bytes*budgetSeconds)
	if rate > 0 && b.requests < 1 || bytes > 0 && b.bytes < need {
		return false
	}
	b.requests, b.bytes = b.requests-1, b.bytes-need
	return true
}

// budget judges how much a minion sends. Another node has done so for what it relays.
func (w *Wall) budget(r *Request) finding {
	if r.Minion == nil || r.Relayed || w.cfg.Rate <= 0 && w.cfg.Bytes <= 0 || w.modes[Budget] == Off {
		return finding{}
	}
	if r.Minion.budget.take(w.cfg.Now(), float64(w.cfg.Rate), float64(w.cfg.Bytes), r.Size) {
		return finding{}
	}
	return finding{Budget, "budget_exceeded", Verdict{Refused: true}}
}

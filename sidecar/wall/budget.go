package wall

import (
	"strconv"
	"sync"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// budgetSeconds is how many seconds' worth of a budget may be spent at once.
const budgetSeconds = 20

// maxPace is how long a request waits at most for its budget. It is less than any stock minion waits for an answer, so that who sends too
// much is slowed and not silenced: what is not answered a minion sends again after 60 s only.
const maxPace = 3 * time.Second

// bucket is what a minion may still send; less than nothing when requests wait for it.
type bucket struct {
	mu       sync.Mutex
	at       time.Time
	requests float64
	bytes    float64
}

// take spends one request of that many bytes and says how long it has to wait for that; false: too long, and nothing is spent. A request that is
// larger than all that a minion may spend at once passes when nothing was spent.
func (b *bucket) take(now time.Time, rate, bytes float64, size int) (time.Duration, bool) {
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
	short := 0.0 // seconds
	if rate > 0 {
		short = max(short, (1-b.requests)/rate)
	}
	if bytes > 0 {
		short = max(short, (need-b.bytes)/bytes)
	}
	wait := time.Duration(short * float64(time.Second))
	if wait > maxPace {
		return 0, false
	}
	b.requests, b.bytes = b.requests-1, b.bytes-need
	return wait, true
}

// budget judges how much a minion sends, and how long it has to wait when it is a little too much. Another node has done so for what it
// relays.
func (w *Wall) budget(r *Request) (time.Duration, finding) {
	if r.Minion == nil || r.Relayed || w.cfg.Rate <= 0 && w.cfg.Bytes <= 0 || w.modes[Budget] == Off {
		return 0, finding{}
	}
	wait, ok := r.Minion.budget.take(w.cfg.Now(), float64(w.cfg.Rate), float64(w.cfg.Bytes), r.Size)
	if ok && (wait == 0 || w.modes[Budget] == Enforce) {
		return wait, finding{}
	}
	return 0, finding{Budget, "budget_exceeded", Verdict{Refused: true}}
}

// maxPatience is for how many seconds at most a master may be asked to wait for the returns of what a minion publishes: one of its workers does nothing
// else meanwhile. A stock minion waits for a minute, three times, and what has not been answered after five minutes nobody hears.
const maxPatience = 300

// patience judges how long a minion has a master wait for it.
func (w *Wall) patience(r *Request) finding {
	if bearable(r.Peek.Raw.Timeout) && bearable(r.Peek.Raw.Tmo) {
		return finding{}
	}
	return finding{Budget, "waits_too_long", Verdict{Refused: true, Reply: replyMap}}
}

// bearable says whether Python's int() makes a number of a value that is small enough. It reads text in more ways than one; with what is neither text
// nor a number it raises.
func bearable(seconds saltwire.Value) bool {
	switch seconds.Form() {
	case saltwire.FormInt, saltwire.FormFloat, saltwire.FormText:
		name, _ := seconds.Name()
		f, err := strconv.ParseFloat(name, 64)
		return err == nil && f <= maxPatience
	}
	return true
}

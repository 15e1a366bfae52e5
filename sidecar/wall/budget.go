package wall

import (
	"strconv"
	"sync"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// budgetSeconds is how many seconds' worth of a budget may be spent at once.
const budgetSeconds = 20

// maxPace is how long a request waits at most for its budget. It is less than any stock minion waits for an answer, so
// that who sends too much is slowed and not silenced: what is not answered a minion sends again after 60 s only.
const maxPace = 3 * time.Second

// bucket is what a minion may still send; less than nothing when requests wait for it.
type bucket struct {
	mu       sync.Mutex
	at       time.Time
	requests float64
	bytes    float64
	answers  float64 // bytes of what it was answered
}

// pace is what a minion may send and be answered per second; zero: any number.
type pace struct{ requests, bytes, answers float64 }

// spendRequest spends one request of that many bytes and says how long it has to wait for that; false: too long, and
// nothing is spent. A request that is larger than all that a minion may spend at once passes when nothing was spent.
func (b *bucket) spendRequest(now time.Time, p pace, size int) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillBucket(now, p)
	need := min(float64(size), p.bytes*budgetSeconds)
	short := 0.0 // seconds
	if p.requests > 0 {
		short = max(short, (1-b.requests)/p.requests)
	}
	if p.bytes > 0 {
		short = max(short, (need-b.bytes)/p.bytes)
	}
	if p.answers > 0 {
		short = max(short, -b.answers/p.answers)
	}
	wait := time.Duration(short * float64(time.Second))
	if wait > maxPace {
		return 0, false
	}
	b.requests, b.bytes = b.requests-1, b.bytes-need
	return wait, true
}

// refillBucket adds what has come together since the last time.
func (b *bucket) refillBucket(now time.Time, p pace) {
	if b.at.IsZero() {
		b.requests, b.bytes, b.answers = p.requests*budgetSeconds, p.bytes*budgetSeconds, p.answers*budgetSeconds
	} else if dt := now.Sub(b.at).Seconds(); dt > 0 {
		b.requests = min(b.requests+dt*p.requests, p.requests*budgetSeconds)
		b.bytes = min(b.bytes+dt*p.bytes, p.bytes*budgetSeconds)
		b.answers = min(b.answers+dt*p.answers, p.answers*budgetSeconds)
	}
	b.at = now
}

// noteAnswer notes how long an answer was. That is known when it is there only, so it is the next requests that wait.
func (b *bucket) noteAnswer(now time.Time, p pace, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillBucket(now, p)
	b.answers -= min(float64(size), p.answers*budgetSeconds)
}

// Answered notes that a minion was answered with so many bytes; a few of a request can have a master, or this program,
// make many.
func (w *Wall) Answered(m *Minion, size int) {
	if w == nil || m == nil || w.cfg.Answers <= 0 || w.modes[Budget] == Off {
		return
	}
	m.budget.noteAnswer(w.cfg.Now(), w.currentPace(), size)
}

func (w *Wall) currentPace() pace {
	return pace{float64(max(w.cfg.Rate, 0)), float64(max(w.cfg.Bytes, 0)), float64(max(w.cfg.Answers, 0))}
}

// checkBudget judges how much a minion sends, and how long it has to wait when it is a little too much. Another node
// has done so for what it relays.
func (w *Wall) checkBudget(r *Request) (time.Duration, finding) {
	if r.Minion == nil || r.Relayed || w.cfg.Rate <= 0 && w.cfg.Bytes <= 0 && w.cfg.Answers <= 0 ||
		w.modes[Budget] == Off {
		return 0, finding{}
	}
	wait, ok := r.Minion.budget.spendRequest(w.cfg.Now(), w.currentPace(), r.Size)
	if ok && (wait == 0 || w.modes[Budget] == Enforce) {
		return wait, finding{}
	}
	return 0, finding{Budget, "budget_exceeded", Verdict{Refused: true}}
}

// maxTimeout is for how many seconds at most a master may be asked to wait for the returns of what a minion publishes:
// one of its workers does nothing else meanwhile. A stock minion waits for a minute, three times, and does not hear an
// answer that comes after five minutes.
const maxTimeout = 300

// checkTimeout judges how long a minion has a master wait for it.
func (w *Wall) checkTimeout(r *Request) finding {
	if isBearable(r.Peek.Raw.Timeout) && isBearable(r.Peek.Raw.Tmo) {
		return finding{}
	}
	return finding{Budget, "waits_too_long", Verdict{Refused: true, Reply: replyMap}}
}

// isBearable says whether Python's int() makes a number of a value that is small enough. It reads text in more ways
// than one; with what is neither text nor a number it raises.
func isBearable(seconds saltwire.Value) bool {
	switch seconds.Form() {
	case saltwire.FormInt, saltwire.FormFloat, saltwire.FormText:
		name, _ := seconds.Name()
		f, err := strconv.ParseFloat(name, 64)
		return err == nil && f <= maxTimeout
	}
	return true
}

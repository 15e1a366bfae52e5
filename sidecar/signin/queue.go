package signin

import (
	"slices"
	"sync"
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/signal"
)

// party is who signs in. Who only knows the id of a minion is not the same party as the minion; who writes its key in
// another way is.
type party struct{ id, pub string }

func partyOf(a saltwire.AuthRequest) party { return party{a.ID, saltcrypt.CleanKey(a.Pub)} }

// line is the sign-ins of one party, in the order in which they came. One of them is answered at a time, so that a
// minion costs one computation however often it asks.
type line struct {
	party
	known   bool // its key is accepted: it is answered here, and before strangers
	old     bool // its newest sign-in is so old that its minion may have given up
	busy    bool // one of its sign-ins is being answered
	turn    int  // which of its places in a lane counts
	waiting []*Request
}

// place is that of a line in a lane. One that the line has left for another does not count.
type place struct {
	*line
	turn int
}

func (p place) isCurrent() bool { return p.turn == p.line.turn && !p.busy && len(p.waiting) > 0 }

// maxShare bounds the sign-ins of one party that wait. A minion makes one, salt-call beside it another, and each is
// tried again.
const maxShare = 16

// lane is where a line waits to be taken.
type lane int

const (
	known lane = iota // accepted keys
	strange
	late // also accepted keys, whose minion has timed out unless its auth_timeout is longer than Salt's default
	lanes
)

// strangersTurn is how often a stranger is taken while minions wait, so that new ones get in during a storm.
const strangersTurn = 8

// queue holds the sign-ins that wait. Bounded in all and per party, with these policies: the newest sign-in of a party
// is answered first; a party with more than maxShare loses its oldest; with more than max in all the oldest sign-in of
// all goes, strangers' first. Parties are taken in the order in which they came, known before strange (but see
// strangersTurn), and those that have waited for nearly as long as a minion does after the other known ones: their
// minions may not listen to the answer any more. A minion with a longer auth_timeout does, and strangers must not keep
// it waiting.
type queue struct {
	max       int
	lateAfter time.Duration // after that a sign-in is late
	now       func() time.Time

	mu     sync.Mutex
	parts  map[party]*line
	lanes  [lanes][]place
	count  int // requests waiting, those being answered too
	since  int // lines taken since the last turn of a stranger
	closed bool
	wake   chan struct{}
}

func newQueue(limit int, lateAfter time.Duration, now func() time.Time) *queue {
	return &queue{max: limit, lateAfter: lateAfter, now: now, parts: map[party]*line{}, wake: make(chan struct{}, 1)}
}

// putRequest adds a sign-in. It returns those that have to be given up for it, with the reason; the new one may be
// among them.
func (q *queue) putRequest(r *Request, isKnown bool) (shed []*Request, outcome string) {
	p := partyOf(r.Auth)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return []*Request{r}, "closed"
	}
	l := q.parts[p]
	if l == nil {
		l = &line{party: p}
		q.parts[p] = l
	}
	first := len(l.waiting) == 0 || l.old
	l.known, l.old = isKnown, false
	l.waiting = append(l.waiting, r)
	if q.count++; first && !l.busy {
		q.enqueueLine(l)
	}
	if len(l.waiting) > maxShare {
		return []*Request{q.dropOldest(l)}, "too_many_sign_ins"
	}
	if q.count > q.max {
		return q.shedLine(), "shed"
	}
	return nil, ""
}

// enqueueLine lets a line wait for its turn, at the end of its lane. The caller holds mu.
func (q *queue) enqueueLine(l *line) {
	at := strange
	switch {
	case l.old:
		at = late
	case l.known:
		at = known
	}
	l.turn++
	q.lanes[at] = append(q.lanes[at], place{l, l.turn})
	if len(q.lanes[at]) > 2*len(q.parts)+fewPlaces { // a lane that is not looked at, because others always come before it
		q.lanes[at] = slices.DeleteFunc(q.lanes[at], func(p place) bool { return !p.isCurrent() })
	}
	q.wakeWorker()
}

// fewPlaces may be left behind by lines that have gone to another lane.
const fewPlaces = 64

// wakeWorker wakes one worker, which wakes the next.
func (q *queue) wakeWorker() { signal.Send(q.wake) }

// dropOldest takes the oldest sign-in from a line that has several.
func (q *queue) dropOldest(l *line) *Request {
	r := l.waiting[0]
	l.waiting = l.waiting[1:]
	q.count--
	return r
}

// shedLine takes away the sign-ins of the line that has waited longest, strangers first and then late ones.
func (q *queue) shedLine() []*Request {
	for _, at := range []lane{strange, late, known} {
		if l := q.popLine(at); l != nil {
			return q.removeLine(l)
		}
	}
	return nil
}

// removeLine forgets a line and returns what waited in it.
func (q *queue) removeLine(l *line) []*Request {
	gone := l.waiting
	l.waiting = nil
	q.count -= len(gone)
	delete(q.parts, l.party)
	return gone
}

// takeRequest returns the next party and the sign-in of it that is to be answered, the newest whose minion listens; nil
// when none waits. Strangers are taken only when they may be. Those whose minions have hung up come back for the caller
// to drop.
func (q *queue) takeRequest(strangers bool) (l *line, r *Request, gone []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since++
	order := []lane{known, late, strange}
	switch {
	case !strangers:
		order = []lane{known, late}
	case q.since >= strangersTurn:
		order, q.since = []lane{strange, known, late}, 0
	}
	return q.nextRequest(order)
}

// nextRequest takes from the first of the lanes that is not empty. The caller holds mu.
func (q *queue) nextRequest(order []lane) (l *line, r *Request, gone []*Request) {
	for {
		if l = q.pickLine(order); l == nil {
			return nil, nil, gone
		}
		gone = append(gone, q.hungUp(l)...)
		if len(l.waiting) == 0 {
			q.removeLine(l)
			continue
		}
		r = l.waiting[len(l.waiting)-1]
		if l.known && !l.old && q.now().Sub(r.At) > q.lateAfter && len(q.lanes[known]) > 0 {
			l.old = true
			q.enqueueLine(l)
			continue
		}
		l.busy = true
		if q.hasWaiting() {
			q.wakeWorker()
		}
		return l, r, gone
	}
}

// hungUp takes those out of a line whose minions have hung up.
func (q *queue) hungUp(l *line) (gone []*Request) {
	var left []*Request
	for _, w := range l.waiting {
		if w.Gone() {
			gone = append(gone, w)
		} else {
			left = append(left, w)
		}
	}
	q.count -= len(gone)
	l.waiting = left
	return gone
}

// pickLine takes the line whose turn it is.
func (q *queue) pickLine(order []lane) *line {
	for _, at := range order {
		if l := q.popLine(at); l != nil {
			return l
		}
	}
	return nil
}

// popLine takes the first line of a lane, nil when there is none.
func (q *queue) popLine(at lane) *line {
	for len(q.lanes[at]) > 0 {
		p := q.lanes[at][0]
		q.lanes[at][0] = place{}
		if q.lanes[at] = q.lanes[at][1:]; len(q.lanes[at]) == 0 {
			q.lanes[at] = nil
		}
		if p.isCurrent() {
			return p.line
		}
	}
	return nil
}

func (q *queue) hasWaiting() bool {
	return len(q.lanes[known])+len(q.lanes[strange])+len(q.lanes[late]) > 0
}

// endRequest ends the answering of a sign-in and returns all tries of it: those with its nonce. What else the party
// waits for gets its turn.
func (q *queue) endRequest(l *line, nonce string) (tries []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var rest []*Request
	for _, w := range l.waiting {
		if w.Auth.Nonce == nonce {
			tries = append(tries, w)
		} else {
			rest = append(rest, w)
		}
	}
	q.count -= len(tries)
	l.waiting = rest
	q.freeLine(l)
	return tries
}

// putBack puts a line that was taken as known among the strangers, unanswered.
func (q *queue) putBack(l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.known = false
	q.freeLine(l)
}

// freeLine ends that a line is busy.
func (q *queue) freeLine(l *line) {
	l.busy, l.old = false, false
	switch {
	case q.parts[l.party] != l: // closed
	case len(l.waiting) == 0:
		delete(q.parts, l.party)
	default:
		q.enqueueLine(l)
	}
}

// close ends the queue and returns all that wait.
func (q *queue) close() (all []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, l := range q.parts {
		all = append(all, q.removeLine(l)...)
	}
	q.lanes = [lanes][]place{}
	return all
}

// oldestAge is how long the first of the accepted keys has waited with its newest sign-in.
func (q *queue) oldestAge() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.lanes[known] {
		if p.isCurrent() {
			return q.now().Sub(p.waiting[len(p.waiting)-1].At)
		}
	}
	return 0
}

// countKnown returns how many sign-ins of accepted keys wait to be taken.
func (q *queue) countKnown() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, at := range []lane{known, late} {
		for _, p := range q.lanes[at] {
			if p.isCurrent() {
				n += len(p.waiting)
			}
		}
	}
	return n
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

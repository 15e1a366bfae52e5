package scale

import (
	"math"
	"time"
)

// signIns is sidecar/signin of one node, for keys that are accepted: a queue of parties (signin/queue.go), a
// budget of CPU (signin/budget.go), and as many workers as the budget has slots.
type signIns struct {
	n     *node
	parts map[int]*party
	known fifo[place]
	late  fifo[place]
	count int

	cpus    float64
	balance float64 // seconds
	at      time.Duration
	idle    int // workers
}

// party is a minion with its tries that wait.
type party struct {
	minion    int
	old, busy bool
	turn      int
	waiting   []*try
}

type place struct {
	*party
	turn int
}

// try is one request to sign in.
type try struct {
	at     time.Duration
	gone   bool // the minion has hung up
	answer func()
}

func (p place) counts() bool { return p.turn == p.party.turn && !p.busy && len(p.waiting) > 0 }

func (n *node) newSignIns() *signIns {
	cpus := max(float64(n.w.Cores)*signInShare, 0.05)
	return &signIns{n: n, parts: map[int]*party{}, cpus: cpus, idle: int(math.Ceil(cpus))}
}

// put adds a try; when there are too many, who has waited longest goes.
func (q *signIns) put(minion int, t *try) {
	p := q.parts[minion]
	if p == nil {
		p = &party{minion: minion}
		q.parts[minion] = p
	}
	first := len(p.waiting) == 0 || p.old
	p.old = false
	p.waiting = append(p.waiting, t)
	if q.count++; first && !p.busy {
		q.enqueue(p)
	}
	if q.count > signInQueue {
		for _, lane := range []*fifo[place]{&q.late, &q.known} {
			if l := pop(lane); l != nil {
				q.retire(l)
				break
			}
		}
	}
	q.stir()
}

func (q *signIns) enqueue(p *party) {
	p.turn++
	lane := &q.known
	if p.old {
		lane = &q.late
	}
	lane.push(place{p, p.turn})
}

func pop(lane *fifo[place]) *party {
	for lane.len() > 0 {
		if p := lane.pop(); p.counts() {
			return p.party
		}
	}
	return nil
}

func (q *signIns) retire(p *party) {
	q.count -= len(p.waiting)
	p.waiting = nil
	delete(q.parts, p.minion)
}

// take returns the next party, whose newest try is to be answered.
func (q *signIns) take() *party {
	for {
		p := pop(&q.known)
		if p == nil {
			p = pop(&q.late)
		}
		if p == nil {
			return nil
		}
		var left []*try
		for _, t := range p.waiting {
			if !t.gone {
				left = append(left, t)
			}
		}
		q.count -= len(p.waiting) - len(left)
		p.waiting = left
		switch {
		case len(left) == 0:
			q.retire(p)
		case !p.old && q.n.w.Sim.Now()-left[len(left)-1].at > signInTimeout && q.known.len() > 0:
			p.old = true
			q.enqueue(p)
		default:
			p.busy = true
			return p
		}
	}
}

// stir lets idle workers work.
func (q *signIns) stir() {
	for q.idle > 0 {
		p := q.take()
		if p == nil {
			return
		}
		q.idle--
		q.spend(func() {
			tries := p.waiting
			q.count -= len(tries)
			p.waiting, p.busy, p.old = nil, false, false
			delete(q.parts, p.minion)
			for _, t := range tries {
				t.answer()
			}
			q.idle++
			q.stir()
		})
	}
}

// spend computes a reply when the budget allows, and pays what that took, by the clock.
func (q *signIns) spend(done func()) {
	s, d := q.n.w.Sim, q.n.daemon
	q.fill()
	wait := time.Duration(0)
	if q.balance < 0 {
		wait = time.Duration(-q.balance / q.cpus * 1e9)
	}
	s.After(wait, func() {
		var began time.Duration
		d.Timed(q.n.w.SignIn, func() { began = s.Now() }, func() {
			q.fill()
			q.balance -= (s.Now() - began).Seconds()
			done()
		})
	})
}

func (q *signIns) fill() {
	now := q.n.w.Sim.Now()
	q.balance = min(q.balance+(now-q.at).Seconds()*q.cpus, budgetBurst*q.cpus)
	q.at = now
}

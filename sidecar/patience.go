package sidecar

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// While a stock master is restarted its port is closed, and what a minion asks waits in the minion's own socket until it is open again. Here
// the port stays open, so the request has to wait here: a minion that is never answered waits for its whole time-out, which with Salt
// 3008 is a minute for everything that it has to ask.
const (
	// waitMost is how many requests wait for a master; their bytes are those of the edges.
	waitMost = 4096
	// partPatience is how long a part of a request waits whose other parts may be done: a minion that hears nothing sends all of them
	// again after a minute (Salt's request_channel_timeout), and those that have fired would fire twice.
	partPatience = 30 * time.Second
	// sweepEvery is how often those are looked for whom nobody waits any more, or whose time is over; the others are decided anew even
	// without news, so that no request hangs on a piece of it that was missed.
	sweepEvery = time.Second
)

// waitingRoom is where requests wait until there is news of the masters (Rouse). One goroutine sees to all of them while there are any.
type waitingRoom struct {
	news atomic.Uint64 // counts
	bell chan struct{} // has a token when the goroutine is to look

	mu      sync.Mutex
	waiting []*call // in the order in which they came
	open    bool    // the goroutine runs
}

func newWaitingRoom() *waitingRoom { return &waitingRoom{bell: make(chan struct{}, 1)} }

func (r *waitingRoom) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *waitingRoom) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// Rouse is to be called whenever a master may take requests that could not before: each that waits is decided anew.
func (p *Proxy) Rouse() {
	p.pillars.changed()
	p.room.news.Add(1)
	p.room.ring()
}

// await has a call wait until a master can take it, and sends it there; false: it may not. One that a peer has handed over may not: that
// asks others, or lets it wait itself; nor a part of a call that goes to all masters, for others have it; nor a return that was to be kept for this master.
func (p *Proxy) await(c *call) bool {
	news := c.news // the call is another goroutine's once it has entered
	if c.from != "" || c.fixed || c.late || p.expired(c, time.Now()) || !p.enterRoom(c) {
		return false
	}
	if news != p.room.news.Load() { // what it waits for has happened while it was refused
		p.room.ring()
	}
	return true
}

// expired says that the time of a call is over.
func (p *Proxy) expired(c *call, now time.Time) bool {
	patience := p.cfg.ForwardTimeout
	if c.part {
		patience = min(patience, partPatience)
	}
	return now.After(c.at.Add(patience))
}

func (p *Proxy) enterRoom(c *call) bool {
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= waitMost || p.ctx.Err() != nil {
		return false
	}
	if !c.waited {
		c.waited = true
		c.trace.Step("wait")
	}
	r.waiting = append(r.waiting, c)
	if !r.open {
		r.open = true
		p.wg.Go(p.keepRoom)
	}
	return true
}

// keepRoom sees to those who wait until nobody does.
func (p *Proxy) keepRoom() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-p.ctx.Done():
		case <-p.room.bell:
		case <-sweep.C:
			p.room.news.Add(1)
		}
		again, over, empty := p.leaveRoom(p.ctx, time.Now())
		for _, c := range over {
			if c.gone() {
				c.drop()
			} else {
				p.lose(c.exchange, c.peek.Cmd, "nowhere", errNowhere)
			}
		}
		for _, c := range again {
			if p.stillKnown(c) {
				p.routeOn(c)
			}
		}
		if empty {
			return
		}
	}
}

// leaveRoom takes out who is to be decided anew, and those whose waiting is over; with ctx, everybody's is.
func (p *Proxy) leaveRoom(ctx context.Context, now time.Time) (again, over []*call, empty bool) {
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	news, stay := r.news.Load(), r.waiting[:0]
	for _, c := range r.waiting {
		switch {
		case ctx.Err() != nil || c.gone() || p.expired(c, now):
			over = append(over, c)
		case c.news != news:
			again = append(again, c)
		default:
			stay = append(stay, c)
		}
	}
	clear(r.waiting[len(stay):])
	r.waiting = stay
	if len(stay) == 0 { // what memory a rush has taken is not kept
		r.waiting, r.open = nil, false
	}
	return again, over, !r.open
}

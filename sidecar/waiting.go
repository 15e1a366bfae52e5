package sidecar

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/signal"
)

// While a stock master is restarted its port is closed, and what a minion asks waits in the minion's own socket until
// it is open again. Here the port stays open, so the request has to wait here: a minion that is never answered waits
// for its whole timeout, which with Salt 3008 is a minute for everything that it has to ask.
const (
	// maxWaiting is how many requests wait for a master; their bytes are those of the edges.
	maxWaiting = 4096
	// partTimeout is how long a part of a request waits whose other parts may be done: a minion without an answer sends
	// all of them again after a minute (Salt's request_channel_timeout), and those that have fired would fire twice.
	partTimeout = 30 * time.Second
	// sweepEvery is how often requests are dropped whose minion has gone, or whose time is over. The others are routed
	// anew even without news, so that no request hangs on news that was missed.
	sweepEvery = time.Second
)

// waitQueue holds requests until there is news of the masters (Notify). One goroutine serves it while it is not empty.
type waitQueue struct {
	news atomic.Uint64 // counts
	wake chan struct{} // has a token when the goroutine is to act

	mu      sync.Mutex
	waiting []*call // in the order in which they came
	open    bool    // the goroutine runs
}

func newWaitQueue() *waitQueue { return &waitQueue{wake: make(chan struct{}, 1)} }

func (q *waitQueue) wakeWorker() { signal.Send(q.wake) }

func (q *waitQueue) countWaiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// NotifyMasters is to be called whenever a master may take requests that could not before: each that waits is routed
// anew.
func (p *Proxy) NotifyMasters() {
	p.pillars.startRound()
	p.queue.news.Add(1)
	p.queue.wakeWorker()
}

// waitForMaster has a call wait until a master can take it; false: it may not.
func (p *Proxy) waitForMaster(c *call) bool {
	news := c.news // the call is another goroutine's once it is in the queue
	if p.isExpired(c, time.Now()) || !p.enqueueCall(c) {
		return false
	}
	if news != p.queue.news.Load() { // what it waits for has happened while it was refused
		p.queue.wakeWorker()
	}
	return true
}

// isExpired says that the time of a call is over.
func (p *Proxy) isExpired(c *call, now time.Time) bool {
	timeout := p.cfg.ForwardTimeout
	if c.partial {
		timeout = min(timeout, partTimeout)
	}
	return now.After(c.at.Add(timeout))
}

func (p *Proxy) enqueueCall(c *call) bool {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaiting || p.ctx.Err() != nil {
		return false
	}
	if !c.waited {
		c.waited = true
		c.trace.Step("wait")
	}
	q.waiting = append(q.waiting, c)
	if !q.open {
		q.open = true
		p.wg.Go(p.serveQueue)
	}
	return true
}

// serveQueue routes what waits until the queue is empty.
func (p *Proxy) serveQueue() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-p.ctx.Done():
		case <-p.queue.wake:
		case <-sweep.C:
			p.queue.news.Add(1)
		}
		again, over, empty := p.dequeueCalls(p.ctx, time.Now())
		for _, c := range over {
			if c.to.Gone() {
				c.to.Drop()
			} else {
				p.abandonRequest(c.request, c.peek.Cmd, "nowhere", errNowhere)
			}
		}
		for _, c := range again {
			if p.isKeyCurrent(c) {
				p.routeCall(c)
			}
		}
		if empty {
			return
		}
	}
}

// dequeueCalls returns the calls that are to be routed anew, and those whose time is over; when ctx has ended, all
// calls are.
func (p *Proxy) dequeueCalls(ctx context.Context, now time.Time) (again, over []*call, empty bool) {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	news, stay := q.news.Load(), q.waiting[:0]
	for _, c := range q.waiting {
		switch {
		case ctx.Err() != nil || c.to.Gone() || p.isExpired(c, now):
			over = append(over, c)
		case c.news != news:
			again = append(again, c)
		default:
			stay = append(stay, c)
		}
	}
	clear(q.waiting[len(stay):])
	q.waiting = stay
	if len(stay) == 0 { // the memory of a rush is not kept
		q.waiting, q.open = nil, false
	}
	return again, over, !q.open
}

// beginLater begins a call that is beyond its sender's budget after a pause.
func (p *Proxy) beginLater(c *call, pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		if p.isKeyCurrent(c) {
			p.beginCall(c)
		}
	case <-p.ctx.Done():
		c.to.Drop()
	}
}

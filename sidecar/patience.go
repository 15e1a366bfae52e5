package sidecar

import (
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/router"
)

// While a stock master is restarted its port is closed, and what a minion asks waits in the minion's own socket until it is open again. Here
// the port stays open, so the request has to wait here: a minion that is never answered waits for its whole time-out, which with Salt
// 3008 is a minute for everything that it has to ask.
const (
	// waitMost is how many requests wait for a master; their bytes are those of the edges.
	waitMost = 4096
	// waitLook is how often it is looked whether there is one.
	waitLook = 100 * time.Millisecond
)

// await has a call wait until a master can take it, and sends it there; false: it may not. One that a peer has handed over may not: that
// asks others, or lets it wait itself; nor a part of a call, whose other parts may be done; nor a return that no journal takes.
func (p *Proxy) await(c *call) bool {
	if c.from != "" || c.part || c.late || p.ctx.Err() != nil || !enter(&p.awaiting, waitMost) {
		return false
	}
	c.trace.Step("wait")
	p.wg.Go(func() {
		can := p.masterFor(c)
		p.awaiting.Add(-1)
		switch {
		case can:
			p.routeOn(c)
		case c.gone():
			c.drop()
		default:
			p.lose(c.exchange, "nowhere", errNowhere)
		}
	})
	return true
}

// masterFor waits until some master can take a call; false: its time is over, or nobody waits for the answer.
func (p *Proxy) masterFor(c *call) bool {
	ctx, cancel := p.deadline(c.exchange)
	defer cancel()
	look := time.NewTicker(waitLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
		if c.gone() {
			return false
		}
		if router.Decide(c.peek, p.cfg.View()).Kind != router.Refuse {
			return true
		}
	}
}

// enter counts one more, unless there are most already.
func enter(n *atomic.Int64, most int64) bool {
	if n.Add(1) > most {
		n.Add(-1)
		return false
	}
	return true
}

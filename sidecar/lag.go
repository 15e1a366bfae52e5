package sidecar

import (
	"context"
	"sync"
	"time"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
)

// A node learns what the cluster has decided some milliseconds, now and then a tenth of a second, after others.
//
// A minion that was accepted through one node may make its next request through another, which does not know of it yet
// or whose master does not see the key yet: such a request waits instead of being answered "bad load".
//
// A minion that cannot open a publication signs in, through any node, and tries once more. Were it given the epoch
// before, the publication would be lost to it; and one whose key has just been removed would get in. So a sign-in waits
// until this node knows what was known anywhere when it came.

const (
	// catchUpTimeout bounds how long a request waits for news; without a quorum there are none.
	catchUpTimeout = 500 * time.Millisecond
	// catchUpBlind is that bound while there have been none.
	catchUpBlind = 100 * time.Millisecond
	// catchUpEvery keeps strangers from making us ask the leader all the time.
	catchUpEvery = 20 * time.Millisecond
	// maxCatchingUp bounds the requests that wait for news. One more is refused, or, a sign-in, dropped: deciding it by what
	// is known would let in, under a flood, whose key was removed a moment ago.
	maxCatchingUp = 8192
	// onDiskTimeout bounds how long a request waits for a key file.
	onDiskTimeout = 3 * time.Second
)

// catchUp lets requests wait together until this node knows what the cluster knows.
type catchUp struct {
	ask func(context.Context) error

	mu      sync.Mutex
	waiting []func()
	running bool
	blind   bool // the last question was not answered: no quorum
}

// add has f called when the node has caught up, or could not; false when too many wait already.
func (c *catchUp) add(ctx context.Context, wg *sync.WaitGroup, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxCatchingUp || ctx.Err() != nil {
		return false
	}
	c.waiting = append(c.waiting, f)
	if !c.running {
		c.running = true
		wg.Go(func() { c.run(ctx) })
	}
	return true
}

// size is how many requests wait for the next question.
func (c *catchUp) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func (c *catchUp) run(ctx context.Context) {
	for {
		c.mu.Lock()
		batch := c.waiting
		c.waiting = nil
		c.running = len(batch) > 0
		c.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		timeout := catchUpTimeout
		if c.blind {
			timeout = catchUpBlind
		}
		asking, cancel := context.WithTimeout(ctx, timeout)
		c.blind = c.ask(asking) != nil // what is known now decides, however much that is
		cancel()
		for _, f := range batch {
			f()
		}
		pause := time.NewTimer(catchUpEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// signIn hands a sign-in on when this node has caught up with the cluster, or cannot.
func (p *Proxy) signIn(r *signin.Request) {
	if !p.catchUp.add(p.ctx, &p.wg, func() { p.cfg.SignIn.Serve(r) }) {
		p.metrics.unanswered("_auth", "signin")
		r.Drop() // the minion tries again
	}
}

// unknown handles a sealed request whose minion's key, or session, is not what this node knows: it looks again when it
// has caught up with the cluster, and refuses then.
func (p *Proxy) unknown(x *exchange, env saltwire.Envelope, reason guard.Reason) {
	if !x.caughtUp && saltwire.ValidID(env.ID) == nil {
		x.caughtUp = true
		if p.catchUp.add(p.ctx, &p.wg, func() { p.serveAES(x, env) }) {
			return
		}
	}
	p.refuse(x, p.cfg.Guard.Refuse(reason, env.ID, x.remote))
}

// onDisk calls f when the local master can see the minion's key: usually at once. A file that does not come is the
// master's to complain about.
func (p *Proxy) onDisk(c *call, f func()) {
	wait := p.cfg.Keys.OnDisk(c.env.ID)
	if wait == nil {
		f()
		return
	}
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, onDiskTimeout)
		defer cancel()
		if err := wait(ctx); err != nil {
			p.cfg.Logger.Warn("key file not written in time", "minion", c.env.ID, "err", err)
		}
		f()
	})
}

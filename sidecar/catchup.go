package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/signal"
)

const (
	// catchUpTimeout bounds how long a request waits for news; without a quorum there are none.
	catchUpTimeout = 500 * time.Millisecond
	// catchUpBlind is that bound while there have been none.
	catchUpBlind = 100 * time.Millisecond
	// catchUpEvery keeps strangers from making us ask the leader all the time: they wait that long after a question.
	catchUpEvery = 20 * time.Millisecond
	// catchUpSoonest and catchUpPause are for those whose key is accepted, whose sign-ins come in storms: they wait
	// catchUpPause times as long as the question took, from catchUpSoonest to catchUpEvery. So a storm spends a tenth of
	// its time on questions however far away the leader is, and a leader who has much to do is asked less.
	catchUpSoonest = 2 * time.Millisecond
	catchUpPause   = 9
	// maxCatchingUp bounds the requests that wait for news. One more is refused, or, a sign-in, dropped: deciding it by
	// what is known would let in, under a flood, whose key was removed a moment ago.
	maxCatchingUp = 8192
	// maxStrangersCatchingUp is how many of those places strangers may have. While the leader does not answer, a question
	// takes long enough for one address to send as many sign-ins as there are places.
	maxStrangersCatchingUp = maxCatchingUp / 2
)

// catchUp lets requests wait together until this node knows what the cluster knows.
type catchUp struct {
	ask   func(context.Context) error
	hurry chan struct{} // has a token when one that may ask soon waits

	mu        sync.Mutex
	waiting   []func(behind bool)
	strangers int // of those that wait
	running   bool
	blind     bool // the last question was not answered: no quorum
}

// ErrBehind means that this node lacks something that the cluster has decided: what it knows must not decide who may
// come in. See Keys.CatchUp.
var ErrBehind = errors.New("this node is behind the cluster")

func newCatchUp(ask func(context.Context) error) *catchUp {
	return &catchUp{ask: ask, hurry: make(chan struct{}, 1)}
}

// addWaiter has f called when the node has caught up, or could not; false when too many wait already. soon is for whom
// the cluster knows; strangers may not have all places. f must not take long, for all others wait for it. behind tells
// it that the cluster has decided something that this node lacks; without a quorum it is false, and what is known
// decides.
func (c *catchUp) addWaiter(ctx context.Context, wg *sync.WaitGroup, soon bool, f func(behind bool)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := len(c.waiting) >= maxCatchingUp || !soon && c.strangers >= maxStrangersCatchingUp
	if full || ctx.Err() != nil {
		return false
	}
	c.waiting = append(c.waiting, f)
	if soon {
		signal.Send(c.hurry)
	} else {
		c.strangers++
	}
	if !c.running {
		c.running = true
		wg.Go(func() { c.askPublishers(ctx) })
	}
	return true
}

// countWaiting is how many requests wait for the next question.
func (c *catchUp) countWaiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func (c *catchUp) askPublishers(ctx context.Context) {
	for {
		batch := c.takeBatch()
		if len(batch) == 0 {
			return
		}
		timeout := catchUpTimeout
		if c.blind {
			timeout = catchUpBlind
		}
		began := time.Now()
		asking, cancel := context.WithTimeout(ctx, timeout)
		err := c.ask(asking)
		cancel()
		behind := errors.Is(err, ErrBehind)
		c.blind = err != nil && !behind
		took := time.Since(began)
		for _, f := range batch {
			f(behind)
		}
		c.waitTurn(ctx, nextPause(took))
	}
}

// takeBatch is those that wait; when there are none the goroutine ends.
func (c *catchUp) takeBatch() []func(bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting
	c.waiting, c.strangers, c.running = nil, 0, len(batch) > 0
	select {
	case <-c.hurry:
	default:
	}
	return batch
}

// nextPause is how long after a question that took so long the next may be asked for those whom the cluster knows.
func nextPause(took time.Duration) time.Duration {
	return min(max(catchUpPause*took, catchUpSoonest), catchUpEvery)
}

// waitTurn waits until the next question may be asked: a while for anybody, and catchUpEvery for strangers.
func (c *catchUp) waitTurn(ctx context.Context, soon time.Duration) {
	t := time.NewTimer(soon)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	t.Reset(catchUpEvery - soon)
	select {
	case <-t.C:
	case <-c.hurry:
	case <-ctx.Done():
	}
}

// A node learns what the cluster has decided some milliseconds, now and then a tenth of a second, after others.
//
// A minion that was accepted through one node may make its next request through another, which does not know of it yet
// or whose master does not see the key yet: such a request waits instead of being answered "bad load".
//
// A minion that cannot open a publication signs in, through any node, and tries once more. Were it given the epoch
// before, the publication would be lost to it; and one whose key has just been removed would get in. So a sign-in waits
// until this node knows what was known anywhere when it came.

// A node that knows that it lacks something, because the leader answers and the log does not arrive or cannot be
// stored, decides nothing: what it lacks may be a deleted key. It is silent, so that minions try another node. Without
// a leader it knows nothing of the kind, and serves.

const (
	// onDiskTimeout bounds how long a request waits for a key file.
	onDiskTimeout = 3 * time.Second
	// BehindTolerated is how long a node that knows that it is behind serves sealed requests and subscribers.
	BehindTolerated = 5 * time.Second
)

// signIn hands a sign-in on when this node has caught up with the cluster, or cannot find out whether it has.
func (p *Proxy) signIn(x *request, r *signin.Request) {
	pub, known := p.cfg.Keys.Accepted(r.Auth.ID)
	known = known && saltcrypt.SameKey(pub, r.Auth.Pub)
	drop := func(where string) {
		p.metrics.countUnanswered("_auth", where)
		r.Drop() // the minion tries again
	}
	if !known && !x.to.Linger() || !p.catchUp.addWaiter(p.ctx, &p.wg, known, func(behind bool) {
		if behind {
			drop("behind")
			return
		}
		p.cfg.SignIn.Serve(r)
	}) {
		drop("signin")
	}
}

// dropIfBehind gives up a sealed request on a node that has known for too long that it lacks something.
func (p *Proxy) dropIfBehind(x *request) bool {
	if p.cfg.Keys.Behind() < BehindTolerated {
		return false
	}
	p.giveUp(x)
	return true
}

// giveUp leaves a sealed request unanswered because this node is behind.
func (p *Proxy) giveUp(x *request) {
	p.metrics.countUnanswered("sealed", "behind")
	x.trace.Failed()
	x.to.PassBack(false) // a node that relayed it knows others
}

// retryUnknown handles a sealed request whose minion's key, or session, is not what this node knows: it looks again
// when it has caught up with the cluster, and refuses then. s is the session that did not open it, if there is one.
func (p *Proxy) retryUnknown(x *request, env saltwire.Envelope, s *session, reason guard.Reason) {
	if !x.caughtUp && saltwire.ValidID(env.ID) == nil && x.to.Linger() {
		x.caughtUp = true
		// Not in the goroutine of catchUp, because sign-ins wait for that one and opening a large request takes long.
		again := func(behind bool) { p.wg.Go(func() { p.lookAgain(x, env, s, behind) }) }
		if p.catchUp.addWaiter(p.ctx, &p.wg, false, again) {
			return
		}
	}
	p.refuseRequest(x, p.cfg.Guard.Refuse(reason, env.ID, x.remote))
}

// lookAgain handles an unknown request with what the cluster knows. What the same session did not open before it does
// not open now: garbage is hashed once.
func (p *Proxy) lookAgain(x *request, env saltwire.Envelope, s *session, behind bool) {
	if behind {
		p.giveUp(x)
		return
	}
	if s != nil {
		if pub, ok := p.cfg.Keys.Accepted(env.ID); ok {
			if now, err := p.sessions.findSession(env.ID, pub); err == nil && now.key == s.key {
				p.openEarlier(x, env, now)
				return
			}
		}
	}
	p.serveSealed(x, env)
}

// whenOnDisk calls f when the local master can see the minion's key: usually at once. A file that does not come is the
// master's to complain about.
func (p *Proxy) whenOnDisk(c *call, f func()) {
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

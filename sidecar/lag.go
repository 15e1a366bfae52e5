package sidecar

import (
	"context"
	"time"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltcrypt"
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

// A node that knows that it lacks something, because the leader answers and the log does not arrive or cannot be stored,
// decides nothing: what it lacks may be a deleted key. It is silent, so that minions try another node. Without a leader
// it knows nothing of the kind, and serves.

const (
	// onDiskTimeout bounds how long a request waits for a key file.
	onDiskTimeout = 3 * time.Second
	// BehindTolerated is how long a node that knows that it is behind serves sealed requests and subscribers.
	BehindTolerated = 5 * time.Second
)

// signIn hands a sign-in on when this node has caught up with the cluster, or nobody can tell.
func (p *Proxy) signIn(x *exchange, r *signin.Request) {
	pub, known := p.cfg.Keys.Accepted(r.Auth.ID)
	known = known && saltcrypt.SameKey(pub, r.Auth.Pub)
	drop := func(where string) {
		p.metrics.unanswered("_auth", where)
		r.Drop() // the minion tries again
	}
	if !known && !x.mayLinger() || !p.catchUp.add(p.ctx, &p.wg, known, func(behind bool) {
		if behind {
			drop("behind")
			return
		}
		p.cfg.SignIn.Serve(r)
	}) {
		drop("signin")
	}
}

// behind gives up a sealed request on a node that has known for too long that it lacks something.
func (p *Proxy) behind(x *exchange) bool {
	if p.cfg.Keys.Behind() < BehindTolerated {
		return false
	}
	p.giveUp(x)
	return true
}

// giveUp leaves a sealed request unanswered because this node is behind.
func (p *Proxy) giveUp(x *exchange) {
	p.metrics.unanswered("sealed", "behind")
	x.trace.Failed()
	if x.pass != nil {
		x.pass(false) // the node that handed it over knows others
		return
	}
	x.drop()
}

// unknown handles a sealed request whose minion's key, or session, is not what this node knows: it looks again when it
// has caught up with the cluster, and refuses then. s is the session that did not open it, if there is one.
func (p *Proxy) unknown(x *exchange, env saltwire.Envelope, s *session, reason guard.Reason) {
	if !x.caughtUp && saltwire.ValidID(env.ID) == nil && x.mayLinger() {
		x.caughtUp = true
		// Not in the goroutine of catchUp, for which sign-ins wait: to open a large request takes long.
		if p.catchUp.add(p.ctx, &p.wg, false, func(behind bool) { p.wg.Go(func() { p.lookAgain(x, env, s, behind) }) }) {
			return
		}
	}
	p.refuse(x, p.cfg.Guard.Refuse(reason, env.ID, x.remote))
}

// lookAgain handles an unknown request with what the cluster knows. What the same session did not open before it does
// not open now: garbage is hashed once.
func (p *Proxy) lookAgain(x *exchange, env saltwire.Envelope, s *session, behind bool) {
	if behind {
		p.giveUp(x)
		return
	}
	if s != nil {
		if pub, ok := p.cfg.Keys.Accepted(env.ID); ok {
			if now, err := p.sessions.get(env.ID, pub); err == nil && now.key == s.key {
				p.openEarlier(x, env, now)
				return
			}
		}
	}
	p.serveAES(x, env)
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

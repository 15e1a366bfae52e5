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

// onDiskTimeout bounds how long a request waits for a key file.
const onDiskTimeout = 3 * time.Second

// signIn hands a sign-in on when this node has caught up with the cluster, or cannot.
func (p *Proxy) signIn(r *signin.Request) {
	pub, known := p.cfg.Keys.Accepted(r.Auth.ID)
	known = known && saltcrypt.SameKey(pub, r.Auth.Pub)
	if !p.catchUp.add(p.ctx, &p.wg, known, func() { p.cfg.SignIn.Serve(r) }) {
		p.metrics.unanswered("_auth", "signin")
		r.Drop() // the minion tries again
	}
}

// unknown handles a sealed request whose minion's key, or session, is not what this node knows: it looks again when it
// has caught up with the cluster, and refuses then.
func (p *Proxy) unknown(x *exchange, env saltwire.Envelope, reason guard.Reason) {
	if !x.caughtUp && saltwire.ValidID(env.ID) == nil {
		x.caughtUp = true
		if p.catchUp.add(p.ctx, &p.wg, false, func() { p.serveAES(x, env) }) {
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

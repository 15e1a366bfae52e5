package sidecar

import (
	"sync/atomic"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// A stock master finds its minions' session keys on disk when it is restarted, so that what they sealed before is good
// afterwards: what waited in their sockets, and what a job of theirs says that began before they signed in anew. Where
// the master is adopted in that restart the cluster's keys are others, and such a request was refused, upon which its
// minion signed in once more. So the key that the master itself gave a minion also opens its requests, for as long as
// the master would take it.

// lookMost is how many requests may be looked up such a key for: the disk that it is on may hang.
const lookMost = 64

// openEarlier takes a request that is not sealed with its session's key: when it is sealed with the key that the minion
// got from the master itself, it is one that is sealed with the cluster's from here on, and its reply is sealed with
// the minion's when it goes out. Any other one is unknown.
func (p *Proxy) openEarlier(x *request, env saltwire.Envelope, s *session) {
	if !x.caughtUp || x.from != "" || !tryIncrement(&p.looking, lookMost) {
		p.retryUnknown(x, env, s, guard.ReasonNotAuthentic)
		return
	}
	p.wg.Go(func() {
		key, until, ok := p.cfg.Sessions.Own(env.ID)
		p.looking.Add(-1)
		if !ok || x.at.After(until) {
			p.retryUnknown(x, env, s, guard.ReasonNotAuthentic)
			return
		}
		own := saltcrypt.NewCrypticle(key)
		plain, err := own.Open(nil, env.Load)
		if err != nil {
			p.retryUnknown(x, env, s, guard.ReasonNotAuthentic)
			return
		}
		p.metrics.resealed.Inc()
		env.Load = s.crypticle.Seal(nil, plain, nil)
		x.body = saltwire.AppendEnvelope(nil, env)
		x.to = resealingResponder{x.to, s.crypticle, own}
		p.serveOpened(x, env, s, plain, s.crypticle)
	})
}

// tryIncrement counts one more, unless there are most already.
func tryIncrement(n *atomic.Int64, most int64) bool {
	if n.Add(1) > most {
		n.Add(-1)
		return false
	}
	return true
}

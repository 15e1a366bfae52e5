package sidecar

import (
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// A stock master finds its minions' session keys on disk when it is restarted, so that what they sealed before is good afterwards: what waited
// in their sockets, and what a job of theirs says that began before they signed in anew. Where the master is adopted in that restart the
// cluster's keys are others, and such a request was refused, upon which its minion signed in once more. So the key that the master itself gave
// a minion opens its requests, too, for as long as the master would take it.

// earlier is the session key that a minion got from the master itself, before saltclusterd came to it.
type earlier struct {
	crypticle *saltcrypt.Crypticle
	until     time.Time
}

// earlierKey looks for it where the master has it, which Ensure replaces.
func (p *Proxy) earlierKey(id string) *earlier {
	key, until, ok := p.cfg.Sessions.Own(id)
	if !ok {
		return nil
	}
	return &earlier{crypticle: saltcrypt.NewCrypticle(key), until: until}
}

// openEarlier opens a request that is sealed with such a key. From here on it is one that is sealed with the cluster's, and its reply is sealed
// with the minion's when it goes out.
func (p *Proxy) openEarlier(x *exchange, env *saltwire.Envelope, s *session) (plain []byte, ok bool) {
	e := s.earlier
	if e == nil || x.from != "" || x.at.After(e.until) {
		return nil, false
	}
	plain, err := e.crypticle.Open(nil, env.Load)
	if err != nil {
		return nil, false
	}
	p.metrics.resealed.Inc()
	env.Load = s.crypticle.Seal(nil, plain, nil)
	x.body = saltwire.AppendEnvelope(nil, *env)
	reply := x.reply
	x.reply = func(body []byte) { reply(resealed(body, s.crypticle, e.crypticle)) }
	return plain, true
}

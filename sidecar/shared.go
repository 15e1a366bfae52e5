package sidecar

import (
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// serveShared takes a request of payload version 2, which an operator allows for old minions: it is sealed with the
// cluster's AES key, under the epoch in force or the one before it.
func (p *Proxy) serveShared(x *request, env saltwire.Envelope) {
	crypticle, plain := p.openShared(env.Load)
	if crypticle == nil {
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonNotAuthentic, env.ID, x.remote))
		return
	}
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if peek.ID == "" && router.Nameless(peek.Cmd) {
		p.serveNameless(&call{request: x, env: env, peek: peek, plain: plain, session: &session{}, shared: true,
			crypticle: crypticle})
		return
	}
	pub, ok := p.cfg.Keys.Accepted(peek.ID)
	if !ok {
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonKeyNotAccepted, peek.ID, x.remote))
		return
	}
	s, err := p.sessions.findSession(peek.ID, pub)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonKeyUnusable, peek.ID, x.remote))
		return
	}
	outer := env
	if outer.ID == "" { // version 2 does not name the minion outside
		outer.ID = peek.ID
	}
	if r := p.cfg.Guard.CheckLoad(outer, peek, s.public, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	if r := p.cfg.Guard.CheckVersion(peek.ID, pub, env.Version, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	if peek.HasTok { // else it is certain only that it is one of the minions
		x.to.Authenticated(peek.ID)
	}
	p.admitCall(&call{request: x, env: env, peek: peek, plain: plain, session: s, shared: true, crypticle: crypticle})
}

// serveNameless takes a request of version 2 that does not say which minion sends it: the file client of older minions
// (3006.9) sends no id and no token. As at a stock master the key that it is sealed with is the only proof, so only
// what is the same for every minion is answered.
func (p *Proxy) serveNameless(c *call) {
	if c.peek.HasTok || c.env.ID != "" { // a token proves nothing without an id, and an id outside is not authenticated
		p.refuseRequest(c.request, p.cfg.Guard.Refuse(guard.ReasonIDMismatch, c.env.ID, c.remote))
		return
	}
	if r := p.cfg.Guard.CheckLoad(c.env, c.peek, nil, c.remote); r != nil {
		p.refuseRequest(c.request, r)
		return
	}
	p.admitCall(c)
}

// stillSeals says whether a key still seals what minions ask in version 2.
func (p *Proxy) stillSeals(key *saltcrypt.Crypticle) bool {
	cur, prev := p.cfg.Epochs.Sealing()
	return cur != nil && cur.Crypticle == key || prev != nil && prev.Crypticle == key
}

// openShared opens a load with the epoch in force, or with the one before it as long as that is good.
func (p *Proxy) openShared(load []byte) (*saltcrypt.Crypticle, []byte) {
	cur, prev := p.cfg.Epochs.Sealing()
	for _, m := range []*epochs.Material{cur, prev} {
		if m == nil {
			continue
		}
		if plain, err := m.Crypticle.Open(nil, load); err == nil {
			return m.Crypticle, plain
		}
	}
	return nil, nil
}

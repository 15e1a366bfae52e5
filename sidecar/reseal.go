package sidecar

import (
	"errors"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// nonceSize is the length of the nonce a master puts before its reply (uuid4().hex).
const nonceSize = 32

// serveShared takes a request of payload version 2, which an operator allows for old minions: it is sealed with the
// cluster's AES key, under the epoch in force or the one that is going.
func (p *Proxy) serveShared(x *exchange, env saltwire.Envelope) {
	crypticle, plain := p.openShared(env.Load)
	if crypticle == nil {
		p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonNotAuthentic, env.ID, x.remote))
		return
	}
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if peek.ID == "" && router.Nameless(peek.Cmd) {
		p.serveNameless(&call{exchange: x, env: env, peek: peek, plain: plain, session: &session{}, shared: true, crypticle: crypticle})
		return
	}
	pub, ok := p.cfg.Keys.Accepted(peek.ID)
	if !ok {
		p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonKeyNotAccepted, peek.ID, x.remote))
		return
	}
	s, err := p.sessions.get(peek.ID, pub)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonKeyUnusable, peek.ID, x.remote))
		return
	}
	outer := env
	if outer.ID == "" { // version 2 does not name the minion outside
		outer.ID = peek.ID
	}
	if r := p.cfg.Guard.CheckLoad(outer, peek, s.public, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	if r := p.cfg.Guard.CheckVersion(peek.ID, pub, env.Version, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	if peek.HasTok { // else it is certain only that it is one of the minions
		x.authenticated(peek.ID)
	}
	p.follow(&call{exchange: x, env: env, peek: peek, plain: plain, session: s, shared: true, crypticle: crypticle})
}

// serveNameless takes a request of version 2 that does not say which minion sends it: the file client of older minions (3006.9)
// sends no id and no token. As at a stock master the key that it is sealed with is all the proof there is, so only what is the same
// for every minion is answered.
func (p *Proxy) serveNameless(c *call) {
	if c.peek.HasTok || c.env.ID != "" { // a token proves nothing without an id, and one outside only would be anybody's word
		p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonIDMismatch, c.env.ID, c.remote))
		return
	}
	if r := p.cfg.Guard.CheckLoad(c.env, c.peek, nil, c.remote); r != nil {
		p.refuse(c.exchange, r)
		return
	}
	p.follow(c)
}

// nameless says that nobody is named as the sender of a call.
func (c *call) nameless() bool { return c.shared && c.peek.ID == "" }

// sealing says whether a key still seals what minions ask in version 2.
func (p *Proxy) sealing(key *saltcrypt.Crypticle) bool {
	cur, prev := p.cfg.Epochs.Sealing()
	return cur != nil && cur.Crypticle == key || prev != nil && prev.Crypticle == key
}

// openShared opens a load with the epoch in force, or the one before while it still is.
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

// errNoMasterKey says that the local master's own AES key is not known now.
var errNoMasterKey = errors.New("not signed in at the local master")

// forwardShared sends a version 2 call to the local master under that master's own AES key.
func (p *Proxy) forwardShared(c *call, others []node.ID) {
	local := p.cfg.MasterAES()
	if local == nil {
		p.elsewhere(c, others, "local", true, errNoMasterKey)
		return
	}
	p.forwardResealed(c, local, others)
}

// forwardResealed sends a call to a local master that holds another key than the minion: the same plaintext bytes under
// the master's, and the reply's plaintext under the minion's. Private replies (pillar) are encrypted to the minion's own
// public key and pass as they are.
func (p *Proxy) forwardResealed(c *call, crypticle *saltcrypt.Crypticle, others []node.ID) {
	p.metrics.resealed.Inc()
	env := c.env
	env.Load = crypticle.Seal(nil, c.plain, nil)
	p.cfg.Master.Go(p.ctx, p.atMaster(c), c.sender(), saltwire.AppendEnvelope(nil, env), func(reply []byte, err error) {
		if err != nil {
			p.elsewhere(c, others, "local", upstream.Retryable(err), err)
			return
		}
		p.hear(c, c.self, others, "local", resealed(reply, crypticle, c.crypticle))
	})
}

// sender is the minion that a call comes from, empty when nobody can say; version 2 does not name it outside. What has a worker of the
// master's wait, or may take long, stands in a line of its own: whatever else the minion asks does not wait for that.
func (c *call) sender() string {
	id := c.env.ID
	if id == "" && c.peek.HasTok { // which was verified; another's name would take his turns
		id = c.peek.ID
	}
	switch {
	case id != "" && router.Waits(&c.peek):
		return upstream.Waiting + id
	case router.Long(c.peek.Cmd):
		return upstream.Long + id
	}
	return id
}

// resealed turns a reply under the key from into one under the key to. One that is not sealed with the former (a private one, an error text)
// is returned as it is.
func resealed(reply []byte, from, to *saltcrypt.Crypticle) []byte {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return reply
	}
	plain, err := from.Open(nil, sealed)
	if err != nil || len(plain) < nonceSize {
		return reply
	}
	sealed = to.Seal(nil, plain[nonceSize:], plain[:nonceSize])
	return saltwire.AppendRaw(nil, sealed)
}

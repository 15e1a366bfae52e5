package sidecar

import (
	"bytes"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/wall"
)

// sessionVersion is the payload version since which requests are sealed with the minion's session key. Before, the key
// that all minions share was used (salt/channel/server.py _decode_payload).
const sessionVersion = 3

// openRequest opens a request and hands it on.
func (p *Proxy) openRequest(x *request) {
	env, err := saltwire.ParseEnvelope(x.body)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckEnvelope(env, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	if x.from != "" && x.signIn != (env.Enc == saltwire.EncClear) { // each kind has a path of its own
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonRelayedClear, "", x.remote))
		return
	}
	if env.Enc == saltwire.EncClear {
		p.serveClear(x, env)
		return
	}
	p.serveSealed(x, env)
}

// serveClear takes what is not encrypted: sign-ins, ping, and what an operator allowed.
func (p *Proxy) serveClear(x *request, env saltwire.Envelope) {
	peek, err := saltwire.PeekLoad(env.Load)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if peek.Cmd == "_auth" {
		p.serveAuth(x, env)
		return
	}
	if x.from != "" { // no node relays these, and only that node vouches for the address
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonRelayedClear, "", x.remote))
		return
	}
	if r := p.cfg.Guard.CheckClear(peek.Cmd, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	if peek.Cmd == "ping" { // echoes its load (ClearFuncs.ping): a master need not get unauthenticated bytes for that
		if p.refuseLarge(x) {
			return
		}
		p.metrics.countRequest(peek.Cmd, "answer")
		x.to.Reply(env.Load)
		return
	}
	p.metrics.countRequest(peek.Cmd, "local")
	p.forwardClear(x, peek.Cmd)
}

// refuseLarge refuses what is larger than anything that Salt sends without a session.
func (p *Proxy) refuseLarge(x *request) bool {
	if len(x.body) <= relay.MaxSignIn {
		return false
	}
	p.refuseRequest(x, p.cfg.Guard.Malformed(&saltwire.Refused{Reason: saltwire.ReasonSize}, x.remote))
	return true
}

// serveAuth takes a sign-in, a minion's own or one that a node relayed.
func (p *Proxy) serveAuth(x *request, env saltwire.Envelope) {
	if p.refuseLarge(x) { // the master reads all of it, with values that no Salt has put there
		return
	}
	auth, err := saltwire.ParseAuth(env.Load)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckAuth(auth, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	if r := p.cfg.Guard.CheckVersion(auth.ID, auth.Pub, env.Version, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	route := "local"
	if x.from != "" {
		route = "relayed"
	}
	p.metrics.countRequest("_auth", route)
	x.trace.Command("_auth", auth.ID)
	x.trace.Step("sign-in")
	p.signIn(x, &signin.Request{
		Auth: auth, Raw: x.body, Remote: x.remote, Relayed: x.from != "", Reply: x.to.Reply, Drop: x.to.Drop, Gone: x.to.Gone,
		At: x.at,
	})
}

// serveSealed takes a request of a minion that has signed in.
func (p *Proxy) serveSealed(x *request, env saltwire.Envelope) {
	if p.dropIfBehind(x) {
		return
	}
	if env.Version < sessionVersion {
		p.serveShared(x, env)
		return
	}
	pub, ok := p.cfg.Keys.Accepted(env.ID)
	if !ok {
		p.retryUnknown(x, env, nil, guard.ReasonKeyNotAccepted)
		return
	}
	s, err := p.sessions.findSession(env.ID, pub)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Refuse(guard.ReasonKeyUnusable, env.ID, x.remote))
		return
	}
	if plain, err := s.crypticle.Open(nil, env.Load); err == nil {
		p.serveOpened(x, env, s, plain, s.crypticle)
		return
	}
	if bytes.HasPrefix(env.Load, withoutAES) {
		p.openWithoutAES(x, env, s)
		return
	}
	for _, key := range p.cfg.Keys.FormerSessions(env.ID, pub) {
		former := saltcrypt.NewCrypticle(key)
		if plain, err := former.Open(nil, env.Load); err == nil {
			p.serveOpened(x, env, s, plain, former)
			return
		}
	}
	p.openEarlier(x, env, s)
}

// serveOpened takes a request that was sealed with a session's key, or with a former one of the same minion, which
// opens the answer then.
func (p *Proxy) serveOpened(x *request, env saltwire.Envelope, s *session, plain []byte, by *saltcrypt.Crypticle) {
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		p.refuseRequest(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckLoad(env, peek, s.public, x.remote); r != nil {
		p.refuseRequest(x, r)
		return
	}
	x.to.Authenticated(peek.ID)
	c := &call{request: x, env: env, peek: peek, plain: plain, session: s, crypticle: by}
	p.completeJob(c)
	p.admitCall(c)
}

// admitCall begins a call that the rules let through, without what must not be in it.
func (p *Proxy) admitCall(c *call) {
	c.trace.Step("wall")
	v := p.cfg.Guard.CheckRules(c.env, &wall.Request{
		Peek: &c.peek, Plain: c.plain, Minion: c.session.minion, Size: len(c.body), Relayed: c.from != "", Remote: c.remote,
	})
	if v.Refused {
		c.to.Refused()
	}
	switch {
	case v.Refused && v.BadLoad:
		c.to.Reply(badLoad)
		return
	case v.Refused && v.Reply != nil:
		c.to.Reply(c.sealReply(v.Reply))
		return
	case v.Refused:
		c.to.Drop()
		return
	}
	if v.Plain != nil && !c.replaceLoad(v.Plain) {
		p.refuseRequest(c.request, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
		return
	}
	if v.Wait > 0 {
		p.wg.Go(func() { p.beginLater(c, v.Wait) })
		return
	}
	p.beginCall(c)
}

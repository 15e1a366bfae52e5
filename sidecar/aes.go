package sidecar

import (
	"bytes"
	"context"
	"errors"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// sessionVersion is the payload version since which requests are sealed with the minion's session key. Before, the key
// that all minions share was used (salt/channel/server.py _decode_payload).
const sessionVersion = 3

// serveAES takes a request of a minion that has signed in.
func (p *Proxy) serveAES(x *exchange, env saltwire.Envelope) {
	if p.behind(x) {
		return
	}
	if env.Version < sessionVersion {
		p.serveShared(x, env)
		return
	}
	pub, ok := p.cfg.Keys.Accepted(env.ID)
	if !ok {
		p.unknown(x, env, nil, guard.ReasonKeyNotAccepted)
		return
	}
	s, err := p.sessions.get(env.ID, pub)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonKeyUnusable, env.ID, x.remote))
		return
	}
	if plain, err := s.crypticle.Open(nil, env.Load); err == nil {
		p.serveOpened(x, env, s, plain, s.crypticle)
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

// serveOpened takes a request that was sealed with a session's key, or with a former one of the same minion, which opens the answer then.
func (p *Proxy) serveOpened(x *exchange, env saltwire.Envelope, s *session, plain []byte, by *saltcrypt.Crypticle) {
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckLoad(env, peek, s.public, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	x.authenticated(peek.ID)
	c := &call{exchange: x, env: env, peek: peek, plain: plain, session: s, crypticle: by}
	p.completeJob(c)
	p.follow(c)
}

// call is a request that has been opened and found good.
type call struct {
	*exchange
	env     saltwire.Envelope
	peek    saltwire.Peek
	plain   []byte
	session *session
	shared  bool // sealed with the key all minions share, not with the session's

	crypticle *saltcrypt.Crypticle // what the minion opens the answer with

	self   node.ID // this node
	repeat bool    // doing it twice does no more than doing it once
	job    node.ID // a return: the publisher of its job, for which it is kept when it cannot be reached
	// A question for the returns of a job: who has published it, when that is a member; whether that has answered, and whether
	// anybody has not.
	publisher      node.ID
	asked, unheard bool
	late           bool   // a return: it was to be kept for the local master once
	part           bool   // of a call whose events go several ways
	fixed          bool   // such a part, for every master: its way is not decided again
	left           func() // the local master is done with it, see fileGate; nil: that does not matter
	news           uint64 // of the masters, when it was decided where it goes; see waitingRoom
	waited         bool   // it has been in there
	copied         bool   // others have got their copies
}

// route carries a call to where router.Decide sends it. A relayed one stays here: its node decided already, but what no
// Salt has is answered here, too, for the master must not see it whoever hands it over.
func (p *Proxy) route(c *call) {
	c.traced()
	if p.takesFiles(c) {
		p.file(c)
		return
	}
	p.routeOn(c)
}

// stillKnown says whether the key of a call that has waited is what it was. One whose key was taken away meanwhile is refused.
func (p *Proxy) stillKnown(c *call) bool {
	if c.nameless() && p.sealing(c.crypticle) {
		return true
	}
	if pub, ok := p.cfg.Keys.Accepted(c.peek.ID); ok && saltcrypt.SameKey(pub, c.session.pub) {
		return true
	}
	c.leave()
	p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonKeyNotAccepted, c.env.ID, c.remote))
	return false
}

// traced notes what is asked, when it is traced.
func (c *call) traced() {
	if c.trace == nil {
		return
	}
	cmd := c.peek.Cmd
	if _, known := router.Lookup(router.AES, cmd); !known {
		cmd = "unknown" // whatever a minion has made up
	}
	c.trace.Command(cmd, c.env.ID)
	c.trace.Step("route")
}

// routeOn is route without what this node answers itself.
func (p *Proxy) routeOn(c *call) {
	if _, known := router.Lookup(router.AES, c.peek.Cmd); known && c.from != "" {
		p.metrics.request(c.peek.Cmd, "relayed")
		p.here(c, nil)
		return
	}
	c.news = p.room.news.Load()
	v := p.cfg.View()
	d := router.Decide(c.peek, v)
	c.self, c.repeat, c.publisher = v.Self, d.Repeat, d.Asks
	if d.Unknown {
		p.cfg.Guard.UnknownCommand(c.env.ID, c.peek.Cmd, c.remote)
	}
	if d.Kind != router.Refuse || !c.waited { // a request that waits is one, however often it is decided
		p.metrics.request(c.peek.Cmd, d.Kind.String())
	}
	switch d.Kind {
	case router.ToLocal:
		p.here(c, d.Others)
	case router.Keep:
		p.keep(c, d.Node, d.Others, errPublisher)
	case router.ToNode:
		if d.Job {
			c.job = d.Node
		}
		p.copyOnce(c, d.Copies)
		p.relay(c, d.Node, d.Others)
	case router.ToAll:
		p.copyOnce(c, d.Others)
		p.here(c, nil)
	case router.Split:
		p.split(c, d.Parts)
	case router.Answer:
		c.reply(c.seal(d.Reply))
	default:
		if !p.await(c) {
			p.lose(c.exchange, c.peek.Cmd, "nowhere", errNowhere)
		}
	}
}

// errNowhere says that no node's master can take a request now.
var errNowhere = errors.New("no master of the cluster answers")

// errPublisher says that a return cannot go where its job came from.
var errPublisher = errors.New("the node that published the job cannot be reached")

// forward sends a call to the local master. When that does not take it, one of others gets it.
func (p *Proxy) forward(c *call, others []node.ID) {
	c.trace.Carry("master", "")
	if c.shared {
		p.forwardShared(c, others)
		return
	}
	p.onDisk(c, func() { p.forwardSealed(c, others) })
}

// forwardSealed sends a call as it came, or sealed anew when the local master holds another session key than the minion has used.
func (p *Proxy) forwardSealed(c *call, others []node.ID) {
	local, same, err := p.cfg.Sessions.Ensure(c.env.ID, c.session.key)
	if err != nil {
		p.elsewhere(c, others, "local", true, err)
		return
	}
	if !same || c.crypticle != c.session.crypticle {
		p.forwardResealed(c, saltcrypt.NewCrypticle(local), others)
		return
	}
	p.cfg.Master.Go(p.ctx, p.atMaster(c), c.sender(), c.body, func(reply []byte, err error) {
		switch {
		case err != nil:
			p.elsewhere(c, others, "local", upstream.Retryable(err), err)
		case bytes.Equal(reply, badLoad):
			p.refusedByMaster(c)
		default:
			p.hear(c, c.self, others, "local", reply)
		}
	})
}

// badLoad is what a master answers when it cannot open a request.
var badLoad = saltwire.BadLoad()

// refusedByMaster handles "bad load" for a request that was found good here: the master must hold another session key
// than the file we wrote says (a 3006 worker caches it). What the file says now decides; failing that the minion signs
// in again.
func (p *Proxy) refusedByMaster(c *call) {
	p.cfg.Sessions.Invalidate(c.env.ID)
	local, same, err := p.cfg.Sessions.Ensure(c.env.ID, c.session.key)
	if err != nil || same {
		p.answer(c, "local", badLoad)
		return
	}
	p.forwardResealed(c, saltcrypt.NewCrypticle(local), nil)
}

// answer hands a reply to the minion.
func (p *Proxy) answer(c *call, route string, reply []byte) {
	c.leave()
	if c.from == "" {
		p.cfg.Guard.Answered(c.session.minion, len(reply))
	}
	p.note(c, route, reply)
	c.trace.Step("reply")
	var settle func(context.Context)
	if route == "local" && p.takesReturn(c) {
		p.cfg.Returns.Answered(c.peek.ID, c.plain)
	}
	if route == "local" && p.cfg.Done != nil {
		settle = p.cfg.Done(c.peek.ID, c.peek.Cmd)
	}
	done := func() {
		p.metrics.seconds.WithLabelValues(route).Observe(time.Since(c.at).Seconds())
		c.reply(reply)
	}
	if settle == nil {
		done()
		return
	}
	p.wg.Go(func() {
		settle(p.ctx)
		done()
	})
}

// relay sends a call to another node and waits for its answer. A return that its publisher's node does not answer is kept
// for it: should it have arrived all the same, it is recognised there.
func (p *Proxy) relay(c *call, to node.ID, others []node.ID) {
	ctx, cancel := p.atPeer(c, to)
	c.trace.Carry("relay", string(to))
	p.wg.Go(func() {
		defer cancel()
		reply, err := p.cfg.Relay.Do(c.trace.With(ctx), to, c.body, c.remote)
		if err != nil && c.job == to && p.takesReturn(c) {
			c.job = ""
			p.keep(c, to, others, err)
			return
		}
		if err != nil {
			p.elsewhere(c, others, "relay", relay.Unsent(err), err)
			return
		}
		p.hear(c, to, others, "relay", reply)
	})
}

// elsewhere finds another master for a call that the one it went to did not answer. Unless doing it twice does no harm,
// it must be certain that nothing was sent.
func (p *Proxy) elsewhere(c *call, others []node.ID, from string, unsent bool, err error) {
	c.leave()
	c.trace.Failed()
	if from == "local" && p.later(c, others, unsent, err) || p.unheard(c, others, err) {
		return
	}
	if c.peek.Cmd == fileChunk && (errors.Is(err, upstream.ErrBusy) || errors.Is(err, relay.ErrBusy)) {
		others = nil // the next chunk would go on where this one should have; its minion tries again
	}
	down := errors.Is(err, upstream.ErrDown) || errors.Is(err, relay.ErrMasterDown)
	if len(others) == 0 && down && p.await(c) {
		return
	}
	if len(others) == 0 && unsent && c.from != "" { // its node knows whom else to ask
		p.passBack(c, from, down, err)
		return
	}
	if len(others) == 0 || !unsent && !c.repeat || c.gone() || p.ctx.Err() != nil {
		p.lose(c.exchange, c.peek.Cmd, from, err)
		return
	}
	p.metrics.request(c.peek.Cmd, "failover")
	if others[0] == c.self {
		p.here(c, others[1:])
		return
	}
	p.relay(c, others[0], others[1:])
}

// fileChunk is the command that appends to one file, a chunk at a time.
const fileChunk = "_file_recv"

// passBack gives a call with which nothing was done back to the node that has handed it over.
func (p *Proxy) passBack(c *call, where string, down bool, err error) {
	p.metrics.request(c.peek.Cmd, "passed")
	p.cfg.Logger.Debug("request passed back", "node", c.from, "to", where, "err", err)
	c.pass(down)
}

// errCopies says that a node does not take copies as fast as they come.
var errCopies = errors.New("too many copies wait for it")

// copyOnce copies a call that may be decided again.
func (p *Proxy) copyOnce(c *call, others []node.ID) {
	if !c.copied {
		c.copied = true
		p.copyTo(c, others)
	}
}

// copyTo gives other nodes' masters a copy of a write; the minion hears the local master's answer.
func (p *Proxy) copyTo(c *call, others []node.ID) {
	for _, to := range others {
		if !p.copies.enter(to, len(c.body)) {
			p.metrics.unanswered(c.peek.Cmd, "copy")
			p.cfg.Logger.Warn("write not copied to a node", "node", to, "minion", c.env.ID, "cmd", c.peek.Cmd, "err", errCopies)
			continue
		}
		ctx, cancel := p.deadline(c.exchange)
		p.wg.Go(func() {
			defer cancel()
			defer p.copies.leave(to, len(c.body))
			if _, err := p.cfg.Relay.Do(ctx, to, c.body, c.remote); err != nil {
				p.metrics.unanswered(c.peek.Cmd, "copy")
				p.cfg.Logger.Warn("write not copied to a node", "node", to, "minion", c.env.ID, "cmd", c.peek.Cmd, "err", err)
			}
		})
	}
}

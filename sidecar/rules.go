package sidecar

import (
	"time"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// follow carries a call on that keeps the rules, and without what must not be in it.
func (p *Proxy) follow(c *call) {
	c.trace.Step("wall")
	v := p.cfg.Guard.CheckRules(c.env, &wall.Request{
		Peek: &c.peek, Plain: c.plain, Minion: c.session.minion, Size: len(c.body), Relayed: c.from != "", Remote: c.remote,
	})
	if v.Refused {
		c.refused()
	}
	switch {
	case v.Refused && v.BadLoad:
		c.reply(badLoad)
		return
	case v.Refused && v.Reply != nil:
		c.reply(c.seal(v.Reply))
		return
	case v.Refused:
		c.drop()
		return
	}
	if v.Plain != nil && !c.replace(v.Plain) {
		p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
		return
	}
	if v.Wait > 0 {
		p.wg.Go(func() { p.routeLater(c, v.Wait) })
		return
	}
	p.route(c)
}

// mayTake judges once more what a syndic brings, when this node takes it itself: that it is for another node's master, which is that one's to judge, was
// its sender's word.
func (p *Proxy) mayTake(c *call) bool {
	if c.peek.Cmd != "_syndic_return" || c.from != "" {
		return true
	}
	v := p.cfg.Guard.CheckRules(c.env, &wall.Request{Peek: &c.peek, Plain: c.plain, Relayed: true, Remote: c.remote})
	if v.Refused {
		c.refused()
		c.reply(c.seal(v.Reply))
	}
	return !v.Refused
}

// routeLater lets a call wait that is beyond its sender's budget.
func (p *Proxy) routeLater(c *call, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		if p.stillKnown(c) {
			p.route(c)
		}
	case <-p.ctx.Done():
		c.drop()
	}
}

// replace gives a call another load, for all that see it from here on.
func (c *call) replace(plain []byte) bool {
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		return false
	}
	c.peek, c.plain = peek, plain
	c.env.Load = c.crypticle.Seal(nil, plain, nil)
	c.body = saltwire.AppendEnvelope(nil, c.env)
	return true
}

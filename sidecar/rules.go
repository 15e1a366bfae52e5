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
		c.reply(saltwire.AppendRaw(nil, c.crypticle.Seal(nil, v.Reply, []byte(c.peek.Nonce))))
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

// routeLater lets a call wait that is beyond its sender's budget.
func (p *Proxy) routeLater(c *call, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		p.route(c)
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

package sidecar

import "saltclusterd/sidecar/router"

// useMine answers a call about mines. What only a master can answer goes to one.
func (p *Proxy) useMine(c *call) {
	c.trace.Step("mine")
	p.wg.Go(func() {
		if c.peek.Cmd == "_mine_get" && c.to.Gone() || p.ctx.Err() != nil {
			c.to.Drop()
			return
		}
		ctx, cancel := p.withDeadline(c.request)
		defer cancel()
		err := p.cfg.Mines.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain,
			func(reply []byte) { p.finishAction(c, router.DoMine, c.sealReply(reply)) })
		if err != nil {
			p.finishWith(c, c.actionOutcome(router.DoMine, "", router.MasterOnly), err)
		}
	})
}

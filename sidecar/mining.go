package sidecar

import "saltclusterd/gossip/node"

// takesMine says whether a call that has come to the right node may be answered without its master.
func (p *Proxy) takesMine(c *call) bool { return p.cfg.Mines != nil && p.cfg.Mines.Takes(c.peek.Cmd) }

// mine answers a call about mines. What only a master can answer goes to it, or to one of others, as if there were no Mines.
func (p *Proxy) mine(c *call, others []node.ID) {
	c.trace.Step("mine")
	p.wg.Go(func() {
		if c.idleQuestion() || p.ctx.Err() != nil {
			c.drop()
			return
		}
		ctx, cancel := p.deadline(c.exchange)
		defer cancel()
		err := p.cfg.Mines.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain, func(reply []byte) { p.answer(c, "mine", c.seal(reply)) })
		switch {
		case err == nil:
		case c.idleQuestion(): // it may have waited for its turn
			c.drop()
		default:
			p.forward(c, others)
		}
	})
}

// idleQuestion says whether a call asks for mines and nobody waits for the answer any more. What changes a mine counts all the same, as
// with a master.
func (c *call) idleQuestion() bool { return c.peek.Cmd == "_mine_get" && c.gone() }

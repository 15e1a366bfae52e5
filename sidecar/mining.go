package sidecar

import "saltclusterd/gossip/node"

// takesMine says whether a call that has come to the right node may be answered without its master.
func (p *Proxy) takesMine(c *call) bool { return p.cfg.Mines != nil && p.cfg.Mines.Takes(c.peek.Cmd) }

// mine answers a call about mines. What only a master can answer goes to it, or to one of others, as if there were no Mines.
func (p *Proxy) mine(c *call, others []node.ID) {
	c.trace.Step("mine")
	p.wg.Go(func() {
		ctx, cancel := p.deadline(c.exchange)
		defer cancel()
		err := p.cfg.Mines.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain, func(reply []byte) { p.answer(c, "mine", c.seal(reply)) })
		if err != nil {
			p.forward(c, others)
		}
	})
}

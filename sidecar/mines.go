package sidecar

import (
	"saltclusterd/durable"
	"saltclusterd/sidecar/router"
)

// useMine answers a call about mines. What only a master can answer goes to one, and a change that the disk does not
// take to another node.
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
		if err == nil {
			return
		}
		result := router.MasterOnly
		if durable.IsDiskError(err) && c.peek.Cmd != "_mine_get" {
			result = router.DiskFailed
		}
		p.finishWith(c, c.actionOutcome(router.DoMine, "", result), err)
	})
}

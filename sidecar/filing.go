package sidecar

import (
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// takesFiles says whether a call may be answered without any master.
func (p *Proxy) takesFiles(c *call) bool { return p.cfg.Files != nil && p.cfg.Files.Takes(c.peek.Cmd) }

// file answers a request for files from this node's own roots, whatever the local master does. What only a master can answer
// goes on as if there were no Files.
func (p *Proxy) file(c *call) {
	c.trace.Step("files")
	p.whenOpen(c, func() {
		p.wg.Go(func() {
			if c.gone() || p.ctx.Err() != nil {
				c.leave()
				c.drop()
				return
			}
			ctx, cancel := p.deadline(c.exchange)
			defer cancel()
			err := p.cfg.Files.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain, func(reply []byte) {
				p.metrics.request(c.peek.Cmd, "files")
				p.answer(c, "files", c.seal(reply))
			})
			if err != nil {
				c.leave()
				p.routeOn(c)
			}
		})
	})
}

// seal makes the body that answers a call with msgpack, in one piece of memory: a chunk of a file is a megabyte.
func (c *call) seal(reply []byte) []byte {
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	body := saltwire.AppendRawHeader(make([]byte, 0, n+5), n)
	return c.crypticle.Seal(body, reply, []byte(c.peek.Nonce))
}

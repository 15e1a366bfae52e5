package sidecar

import (
	"sync"

	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
)

// readFiles answers a request for files from this node's own roots, whatever the local master does. What only a master
// can answer is routed as if there were no Files.
func (p *Proxy) readFiles(c *call) {
	c.trace.Step("files")
	p.passGate(c, func() {
		p.wg.Go(func() {
			if c.to.Gone() || p.ctx.Err() != nil {
				c.leaveGate()
				c.to.Drop()
				return
			}
			ctx, cancel := p.withDeadline(c.request)
			defer cancel()
			err := p.cfg.Files.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain, func(reply []byte) {
				p.metrics.countRequest(c.peek.Cmd, "files")
				p.answerFile(c, reply)
			})
			if err != nil {
				p.finishWith(c, c.actionOutcome(router.DoReadFiles, "", router.MasterOnly), err)
			}
		})
	})
}

// lentBody is from how many bytes on the memory of an answer is used again.
const lentBody = 256 << 10

// answerFile answers in memory that comes back for the next answer when this one is written out: to get a megabyte anew
// takes a third as long as to seal it.
func (p *Proxy) answerFile(c *call, reply []byte) {
	if len(reply) < lentBody {
		p.finishAction(c, router.DoReadFiles, c.sealReply(reply))
		return
	}
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	body := c.sealInto(p.bodies.getBuffer(n+rawHeader), reply)
	p.answerBy(c, router.DoReadFiles.String(), body, func(body []byte) { c.to.ReplyLent(body, p.bodies.putBuffer) })
}

// bodies are pieces of memory for answers. The garbage collector takes what is not used.
type bodies struct{ pool sync.Pool }

// maxLent is the room of a piece that is kept at most: what a slow reader has lent is counted by what is in it, not by
// its room.
const maxLent = 2 << 20

// getBuffer returns an empty slice with room for n bytes.
func (b *bodies) getBuffer(n int) []byte {
	if body, ok := b.pool.Get().(*[]byte); ok && cap(*body) >= n {
		return (*body)[:0]
	}
	return make([]byte, 0, n)
}

func (b *bodies) putBuffer(body []byte) {
	if cap(body) <= maxLent {
		b.pool.Put(&body)
	}
}

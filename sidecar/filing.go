package sidecar

import (
	"sync"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// takesFiles says whether a call may be answered without any master. What shows at once saves a goroutine.
func (p *Proxy) takesFiles(c *call) bool {
	return p.cfg.Files != nil && p.cfg.Files.Takes(c.peek.Cmd) && p.cfg.Files.Reads(c.peek.Cmd, c.plain)
}

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
				p.answer(c, "files", p.sealLent(c, reply))
			})
			if err != nil {
				c.leave()
				p.routeOn(c)
			}
		})
	})
}

// lentBody is from how many bytes on the memory of an answer is used again.
const lentBody = 256 << 10

// sealLent is seal in memory that comes back for the next answer when this one is written out: to get a megabyte anew takes a third
// as long as to seal it.
func (p *Proxy) sealLent(c *call, reply []byte) []byte {
	lend := c.lend
	if lend == nil || len(reply) < lentBody {
		return c.seal(reply)
	}
	c.reply = func(body []byte) { lend(body, p.bodies.put) }
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	return c.sealInto(p.bodies.get(n+rawHeader), reply)
}

// bodies are pieces of memory for answers. The garbage collector takes what is not used.
type bodies struct{ pool sync.Pool }

// maxLent is the room of a piece that is kept at most: what a slow reader has lent is counted by what is in it, not by its room.
const maxLent = 2 << 20

// get returns an empty slice with room for n bytes.
func (b *bodies) get(n int) []byte {
	if body, ok := b.pool.Get().(*[]byte); ok && cap(*body) >= n {
		return (*body)[:0]
	}
	return make([]byte, 0, n)
}

func (b *bodies) put(body []byte) {
	if cap(body) <= maxLent {
		b.pool.Put(&body)
	}
}

// rawHeader is the longest header of a raw value in msgpack.
const rawHeader = 5

// seal makes the body that answers a call with msgpack, in one piece of memory: a chunk of a file is a megabyte.
func (c *call) seal(reply []byte) []byte {
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	return c.sealInto(make([]byte, 0, n+rawHeader), reply)
}

// sealInto is seal in given memory, which has room enough.
func (c *call) sealInto(body, reply []byte) []byte {
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	return c.crypticle.Seal(saltwire.AppendRawHeader(body, n), reply, []byte(c.peek.Nonce))
}

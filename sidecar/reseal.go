package sidecar

import (
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// nonceSize is the length of the nonce a master puts before its reply (uuid4().hex).
const nonceSize = 32

// forwardResealed sends a call to a local master that holds another session key than the cluster's: the same plaintext
// bytes under that key, and the reply's plaintext under ours. Private replies (pillar) are encrypted to the minion's own
// key and pass as they are.
func (p *Proxy) forwardResealed(c *call, local saltcrypt.Key) {
	p.metrics.resealed.Inc()
	crypticle := saltcrypt.NewCrypticle(local)
	env := c.env
	env.Load = crypticle.Seal(nil, c.plain, nil)
	ctx, cancel := p.deadline(c.exchange)
	p.cfg.Master.Go(ctx, saltwire.AppendEnvelope(nil, env), func(reply []byte, err error) {
		cancel()
		if err != nil {
			p.lose(c.exchange, "local", err)
			return
		}
		p.answer(c, "local", c.reseal(crypticle, reply))
	})
}

// reseal turns a reply under the local master's session key into one under the cluster's. A reply that is not sealed
// with the former (a private one, an error text) is returned as it is.
func (c *call) reseal(local *saltcrypt.Crypticle, reply []byte) []byte {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return reply
	}
	plain, err := local.Open(nil, sealed)
	if err != nil || len(plain) < nonceSize {
		return reply
	}
	sealed = c.session.crypticle.Seal(nil, plain[nonceSize:], plain[:nonceSize])
	return saltwire.AppendRaw(nil, sealed)
}

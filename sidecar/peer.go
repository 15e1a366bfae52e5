package sidecar

import (
	"errors"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
)

// askNode relays a call to another node and waits for its answer. A return that its publisher's node does not answer is
// kept for it: should it have arrived all the same, it is recognised there.
func (p *Proxy) askNode(c *call, to node.ID) {
	ctx, cancel := p.peerContext(c, to)
	c.trace.Carry("relay", string(to))
	p.wg.Go(func() {
		defer cancel()
		reply, err := p.cfg.Relay.Do(c.trace.With(ctx), to, c.body, c.remote)
		result := router.Unanswered
		switch {
		case err == nil && isQuestion(c) && c.isEmpty(reply):
			result, err = router.UnknownJob, errNotPublished
		case err == nil:
			p.finishAction(c, router.DoAskNode, reply)
			return
		case relay.Unsent(err):
			result = router.Unsent
		}
		p.finishWith(c, c.actionOutcome(router.DoAskNode, to, result), err)
	})
}

// errCopies says that a node does not take copies as fast as they come.
var errCopies = errors.New("too many copies wait for it")

// copyOnce gives other nodes' masters a copy of a write, once for a call that may be decided again. The minion gets the
// local master's answer.
func (p *Proxy) copyOnce(c *call, others []node.ID) {
	if c.copied || len(others) == 0 {
		return
	}
	c.copied = true
	for _, to := range others {
		p.copyTo(c, to)
	}
}

func (p *Proxy) copyTo(c *call, to node.ID) {
	fail := func(err error) {
		p.metrics.countUnanswered(c.peek.Cmd, "copy")
		p.cfg.Logger.Warn("write not copied to a node", "node", to, "minion", c.env.ID, "cmd", c.peek.Cmd, "err", err)
	}
	if !p.copies.takePlace(to, len(c.body)) {
		fail(errCopies)
		return
	}
	ctx, cancel := p.withDeadline(c.request)
	p.wg.Go(func() {
		defer cancel()
		defer p.copies.freePlace(to, len(c.body))
		if _, err := p.cfg.Relay.Do(ctx, to, c.body, c.remote); err != nil {
			fail(err)
		}
	})
}

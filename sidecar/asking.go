package sidecar

import (
	"errors"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/saltwire"
)

// A minion that has published a job by way of a master (publish.publish) asks every 0.3 s what has been returned, with pub_ret. A
// stock master answers from its job cache when its own publish_auth says that the minion is the one; any other master
// answers with an empty text, on which the minion's module breaks. So the publisher's node is asked, or whoever has the
// job when that is gone, each without its master where Config.Returns can; an empty text means that the next one is to be
// asked.

// askCmd is the command of these questions.
const askCmd = "pub_ret"

var (
	emptyText = []byte{0xa0} // what a master's run_func answers when the function raised
	emptyMap  = []byte{0x80} // nothing has been returned yet
)

// errNotPublished says that a node knows nothing of a minion's publication.
var errNotPublished = errors.New("it does not know that the minion has published the job")

// asks says whether a call is such a question.
func (c *call) asks() bool { return c.peek.Cmd == askCmd && c.peek.JID != "" }

// published answers a question here. When this node does not know of the job, one of others is asked.
func (p *Proxy) published(c *call, others []node.ID) {
	c.trace.Step("cache")
	p.wg.Go(func() {
		ctx, cancel := p.deadline(c.exchange)
		reply, err := p.cfg.Returns.Published(ctx, c.peek.JID, c.peek.ID)
		cancel()
		switch {
		case err == nil:
			p.answer(c, "cache", c.seal(reply))
		case errors.Is(err, returns.ErrUnknown):
			p.notPublished(c, c.self, others)
		default: // the master's Python may know what this node cannot tell
			p.forward(c, others)
		}
	})
}

// notPublished goes on when node from, which may be this one, does not know of a job.
func (p *Proxy) notPublished(c *call, from node.ID, others []node.ID) {
	c.asked = c.asked || from == c.publisher
	if len(others) > 0 {
		p.elsewhere(c, others, "cache", true, errNotPublished)
		return
	}
	p.nobodyKnows(c)
}

// nobodyKnows ends a question. The minion hears what a stock master says, but that nothing has been returned yet when
// somebody who might know could not be asked: then it asks again.
func (p *Proxy) nobodyKnows(c *call) {
	reply := emptyText
	if c.from == "" && !c.asked && (c.publisher != "" || c.unheard) {
		reply = emptyMap
	}
	p.answer(c, "cache", c.seal(reply))
}

// unheard notes that a node could not be asked, and ends the question when it was the last one.
func (p *Proxy) unheard(c *call, others []node.ID, err error) bool {
	if !c.asks() || errors.Is(err, errNotPublished) {
		return false
	}
	c.unheard = true
	if len(others) > 0 || c.from != "" || c.gone() {
		return false
	}
	p.nobodyKnows(c)
	return true
}

// hear takes a master's answer, or another node's.
func (p *Proxy) hear(c *call, from node.ID, others []node.ID, route string, reply []byte) {
	if c.asks() && c.isEmpty(reply) {
		p.notPublished(c, from, others)
		return
	}
	p.answer(c, route, reply)
}

// isEmpty says whether a reply is an empty text for the minion, or the text of an error in the way of its request through
// a master, which is not sealed.
func (c *call) isEmpty(reply []byte) bool {
	const longest = 256 // of a sealed empty text, and of those texts
	sealed, ok := saltwire.Bytes(reply)
	if !ok || len(sealed) > longest {
		return false
	}
	switch string(sealed) {
	case "Some exception handling minion payload", "Server-side exception handling payload":
		return true
	}
	plain, err := c.crypticle.Open(nil, sealed)
	return err == nil && len(plain) >= nonceSize && string(plain[nonceSize:]) == string(emptyText)
}

package sidecar

import (
	"errors"

	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
)

// A minion that has published a job by way of a master (publish.publish) asks every 0.3 s what was returned, with
// pub_ret. A stock master answers from its job cache when its own publish_auth says that the minion is the one; any
// other master answers with an empty text, on which the minion's module breaks. So the publisher's node is asked, or
// any that has the job when that is gone, each without its master where Config.Returns can; an empty text means that
// the next one is asked.

// emptyText is what a master's run_func answers when the function has raised.
const emptyText = "\xa0"

// isQuestion says whether a call is such a question.
func isQuestion(c *call) bool { return c.peek.Cmd == "pub_ret" && c.peek.JID != "" }

// readJobCache answers a question here.
func (p *Proxy) readJobCache(c *call) {
	c.trace.Step("cache")
	p.wg.Go(func() {
		ctx, cancel := p.withDeadline(c.request)
		reply, err := p.cfg.Returns.Published(ctx, c.peek.JID, c.peek.ID)
		cancel()
		switch {
		case err == nil:
			p.finishAction(c, router.DoReadJobCache, c.sealReply(reply))
		case errors.Is(err, returns.ErrUnknown):
			p.finishWith(c, c.actionOutcome(router.DoReadJobCache, "", router.UnknownJob), errNotPublished)
		default: // the master's Python may know what this node cannot tell
			p.finishWith(c, c.actionOutcome(router.DoReadJobCache, "", router.MasterOnly), err)
		}
	})
}

// isEmpty says whether a reply is an empty text for the minion, or the text of an error between it and
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
	return err == nil && len(plain) >= nonceSize && string(plain[nonceSize:]) == emptyText
}

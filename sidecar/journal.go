package sidecar

import (
	"context"
	"errors"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// peerTimeout is how long another node has for a return of a job that it has published; then the return is kept for it
// here.
const peerTimeout = 4 * time.Second

// journalReturn takes a return of a job of this node.
func (p *Proxy) journalReturn(c *call) {
	if !p.mayTake(c) {
		return
	}
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Take(c.asReturn(), func(reply []byte, err error) {
		defer p.wg.Done()
		p.endJournal(c, router.DoJournal, "", reply, err)
	})
}

// keepForNode keeps a return for the publisher of its job, which cannot be reached.
func (p *Proxy) keepForNode(c *call, to node.ID) {
	if !p.mayTake(c) {
		return
	}
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Keep(to, c.asReturn(), func(reply []byte, err error) {
		defer p.wg.Done()
		if err == nil {
			p.metrics.countRequest(c.peek.Cmd, "kept")
		}
		p.endJournal(c, router.DoKeepForNode, to, reply, err)
	})
}

// keepForMaster keeps a return that the local master does not take now until it does. When the journal must not keep
// it, what the master has made of the return decides.
func (p *Proxy) keepForMaster(c *call) {
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Defer(c.asReturn(), func(reply []byte, err error) {
		defer p.wg.Done()
		if err == nil {
			p.metrics.countRequest(c.peek.Cmd, "later")
			p.finishAction(c, router.DoKeepForMaster, c.sealReply(reply))
			return
		}
		result := router.DiskFailed
		if errors.Is(err, returns.ErrPython) || returns.MasterMayTake(err) {
			result = c.masterResult
		}
		p.wg.Go(func() {
			p.finishWith(c, c.actionOutcome(router.DoKeepForMaster, "", result), errors.Join(c.err, err))
		})
	})
}

// endJournal ends what a journal did. The goroutine may be the journal's, which must not wait for the master or a disk.
func (p *Proxy) endJournal(c *call, a router.Action, to node.ID, reply []byte, err error) {
	result := router.DiskFailed
	switch {
	case err == nil:
		p.finishAction(c, a, c.sealReply(reply))
		return
	case errors.Is(err, returns.ErrMalformed) && a == router.DoJournal:
		result = router.Malformed
	case errors.Is(err, returns.ErrPython) && a == router.DoJournal:
		result = router.MasterOnly
	case returns.MasterMayTake(err):
		result = router.Unsent
	}
	p.wg.Go(func() {
		if result == router.MasterOnly {
			p.cfg.Returns.Mend(c.peek.JID, c.peek.ID)
		}
		p.finishWith(c, c.actionOutcome(a, to, result), errors.Join(c.err, err))
	})
}

// handOff has another node keep a return for node to, the publisher of its job, when this node's journal fails. The
// local master must not get it: where the disk fails, a master answers and stores nothing. When no node keeps it, the
// minion gets no answer and sends it again.
func (p *Proxy) handOff(c *call, to node.ID) {
	c.trace.Carry("journal", "peer")
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, min(peerTimeout, p.cfg.ForwardTimeout))
		defer cancel()
		reply, err := p.cfg.Returns.HandOff(ctx, to, c.asReturn())
		if err != nil {
			p.finishWith(c, c.actionOutcome(router.DoHandOff, to, router.Unsent), errors.Join(c.err, err))
			return
		}
		p.metrics.countRequest(c.peek.Cmd, "handed_off")
		p.finishAction(c, router.DoHandOff, c.sealReply(reply))
	})
}

// mayTake judges a syndic's return once more when this node takes it itself: only its sender says that it is for
// another node's master, which would judge it.
func (p *Proxy) mayTake(c *call) bool {
	if c.peek.Cmd != "_syndic_return" || c.from != "" {
		return true
	}
	v := p.cfg.Guard.CheckRules(c.env, &wall.Request{Peek: &c.peek, Plain: c.plain, Relayed: true, Remote: c.remote})
	if v.Refused {
		c.to.Refused()
		c.to.Reply(c.sealReply(v.Reply))
	}
	return !v.Refused
}

// completeJob gives the return of a queued job the id of the job that was published: minions with unique_jid cut it
// (saltwire.CutJID). A signed load stays as it is; the id is passed beside it, and Python alone would file it under the
// cut one.
func (p *Proxy) completeJob(c *call) {
	if p.cfg.WholeJob == nil || c.peek.Cmd != "_return" || !saltwire.IsCutJID(c.peek.JID) {
		return
	}
	full := p.cfg.WholeJob(c.peek.JID, c.peek.MasterID)
	if full == "" {
		return
	}
	if c.peek.HasSig {
		c.peek.JID = full
		return
	}
	plain, err := saltwire.ReplaceValue(c.plain, "jid", saltwire.AppendStr(nil, full))
	if err != nil || !c.replaceLoad(plain) {
		p.cfg.Logger.Warn("return of a queued job stays under the id that its minion has cut", "minion", c.peek.ID, "jid",
			c.peek.JID, "err", err)
	}
}

func (c *call) asReturn() returns.Request {
	return returns.Request{
		Cmd: c.peek.Cmd, JID: c.peek.JID, Minion: c.peek.ID, Load: c.plain, Received: c.at, From: c.from,
	}
}

package sidecar

import (
	"context"
	"errors"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/upstream"
)

// A call is carried from step to step: package router decides which (Decide, Start, Next), carryOut starts the action,
// and the action's end comes back to finishAction or finishWith. An action that waits for a disk, the master or another
// node does so in a goroutine of its own or calls back.

var (
	errNowhere      = errors.New("no master of the cluster answers")
	errPublisher    = errors.New("the node that published the job cannot be reached")
	errNotPublished = errors.New("it does not know the job as published by this minion")
)

// beginCall takes the first step of a call.
func (p *Proxy) beginCall(c *call) {
	c.traceCommand()
	c.progress.Can.Files = p.cfg.Files != nil && p.cfg.Files.Takes(c.peek.Cmd) && p.cfg.Files.Reads(c.peek.Cmd, c.plain)
	p.carryOut(c, router.Begin(c.progress))
}

// routeCall decides where a call goes. A relayed one stays here, because the node that relayed it has decided; but a
// command that no Salt has is answered here as well, because the master must not get it from anyone.
func (p *Proxy) routeCall(c *call) {
	c.news = p.queue.news.Load()
	v := p.cfg.View()
	c.progress.Cmd, c.progress.JID, c.progress.Self = c.peek.Cmd, c.peek.JID, v.Self
	c.progress.Relayed, c.progress.Shared, c.progress.Can = c.from != "", c.shared, p.nativeFor(c.peek.Cmd)
	c.err = nil
	d := router.Decision{Kind: router.ToLocal}
	if _, known := router.Lookup(router.AES, c.peek.Cmd); known && c.from != "" {
		p.metrics.countRequest(c.peek.Cmd, "relayed")
	} else {
		d = router.Decide(c.peek, v)
		if d.Unknown {
			p.cfg.Guard.UnknownCommand(c.env.ID, c.peek.Cmd, c.remote)
		}
		if d.Kind != router.Refuse || !c.waited { // a request that waits is one, however often it is decided
			p.metrics.countRequest(c.peek.Cmd, d.Kind.String())
		}
		p.copyOnce(c, d.CopyTo())
	}
	p.carryOut(c, c.startDecision(d))
}

// startDecision returns the first step of a decision.
func (c *call) startDecision(d router.Decision) (step router.Step) {
	switch d.Kind {
	case router.Refuse:
		c.err = errNowhere
	case router.Keep:
		c.err = errPublisher
	}
	c.progress, step = router.Start(c.progress, d)
	return step
}

// nativeFor is what this node can do with a command without its master's Python.
func (p *Proxy) nativeFor(cmd string) router.Native {
	return router.Native{Returns: p.cfg.Returns != nil, Events: p.cfg.Events != nil,
		Mines: p.cfg.Mines != nil && p.cfg.Mines.Takes(cmd)}
}

// carryOut starts an action.
func (p *Proxy) carryOut(c *call, s router.Step) {
	if s.Failover {
		p.metrics.countRequest(c.peek.Cmd, "failover")
	}
	switch s.Action {
	case router.DoRoute:
		p.routeCall(c)
	case router.DoSplit:
		p.splitEvents(c, s.Parts)
	case router.DoReadFiles:
		p.readFiles(c)
	case router.DoReadJobCache:
		p.readJobCache(c)
	case router.DoFire:
		p.fireEvents(c)
	case router.DoMine:
		p.useMine(c)
	case router.DoJournal:
		p.journalReturn(c)
	case router.DoKeepForNode:
		p.keepForNode(c, s.Node)
	case router.DoKeepForMaster:
		p.keepForMaster(c)
	case router.DoHandOff:
		p.handOff(c, s.Node)
	case router.DoAskMaster:
		p.askMaster(c)
	case router.DoAskNode:
		p.askNode(c, s.Node)
	default:
		p.endStep(c, s)
	}
}

// endStep carries out the last step of a call on this node, or has it wait.
func (p *Proxy) endStep(c *call, s router.Step) {
	switch s.Action {
	case router.DoWait:
		if !p.waitForMaster(c) {
			p.abandonRequest(c.request, c.peek.Cmd, s.Where, c.err)
		}
	case router.DoSeal:
		if s.Where == "" {
			c.to.Reply(c.sealReply(s.Reply))
			return
		}
		p.answerBy(c, s.Where, c.sealReply(s.Reply), c.to.Reply)
	case router.DoRefuse:
		p.refuseRequest(c.request, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
	case router.DoPassBack:
		p.metrics.countRequest(c.peek.Cmd, "passed")
		p.cfg.Logger.Debug("request passed back", "node", c.from, "route", s.Where, "err", c.err)
		c.to.PassBack(s.Down)
	case router.DoDrop:
		c.to.Drop()
	default:
		p.abandonRequest(c.request, c.peek.Cmd, s.Where, c.err)
	}
}

// finishAction ends an action with a reply for the minion.
func (p *Proxy) finishAction(c *call, a router.Action, reply []byte) {
	p.answerBy(c, a.String(), reply, c.to.Reply)
}

// finishWith ends an action without a reply: router.Next decides what follows.
func (p *Proxy) finishWith(c *call, o router.Outcome, err error) {
	c.leaveGate()
	c.err = err
	o.Down = errors.Is(err, upstream.ErrDown) || errors.Is(err, relay.ErrMasterDown)
	o.Busy = errors.Is(err, upstream.ErrBusy) || errors.Is(err, relay.ErrBusy)
	o.Closing = p.ctx.Err() != nil
	if a := o.Action; a == router.DoAskMaster || a == router.DoAskNode || a == router.DoKeepForNode ||
		a == router.DoKeepForMaster {
		c.trace.Failed()
	}
	var step router.Step
	c.progress, step = router.Next(c.progress, o)
	p.carryOut(c, step)
}

// answerBy hands a reply to the minion by respond, a method of the Responder. where is the place that it comes from.
func (p *Proxy) answerBy(c *call, where string, reply []byte, respond func([]byte)) {
	c.leaveGate()
	if c.from == "" {
		p.cfg.Guard.Answered(c.session.minion, len(reply))
	}
	p.noteEvents(c, where, reply)
	c.trace.Step("reply")
	var settle func(context.Context)
	if where == router.DoAskMaster.String() {
		if p.isReturn(c) {
			p.cfg.Returns.Answered(c.peek.ID, c.plain)
		}
		if p.cfg.Done != nil {
			settle = p.cfg.Done(c.peek.ID, c.peek.Cmd)
		}
	}
	done := func() {
		p.metrics.seconds.WithLabelValues(where).Observe(time.Since(c.at).Seconds())
		respond(reply)
	}
	if settle == nil {
		done()
		return
	}
	p.wg.Go(func() {
		settle(p.ctx)
		done()
	})
}

// refuseRequest answers a request with what the refusal says, or not at all.
func (p *Proxy) refuseRequest(x *request, r *guard.Refusal) {
	x.to.Refused()
	if r.Answer == nil {
		x.to.Drop()
		return
	}
	x.to.Reply(r.Answer)
}

// abandonRequest gives up a request that was fine: the minion repeats it.
func (p *Proxy) abandonRequest(x *request, cmd, where string, err error) {
	p.metrics.countUnanswered(cmd, where)
	x.trace.Failed()
	p.cfg.Logger.Warn("request not answered", "remote", x.remote, "route", where, "err", err)
	x.to.Drop()
}

// isKeyCurrent says whether the key of a call that has waited is what it was. A call whose key was taken away meanwhile
// is refused.
func (p *Proxy) isKeyCurrent(c *call) bool {
	if c.isNameless() && p.stillSeals(c.crypticle) {
		return true
	}
	if pub, ok := p.cfg.Keys.Accepted(c.peek.ID); ok && saltcrypt.SameKey(pub, c.session.pub) {
		return true
	}
	c.leaveGate()
	p.refuseRequest(c.request, p.cfg.Guard.Refuse(guard.ReasonKeyNotAccepted, c.env.ID, c.remote))
	return false
}

// longTimeout is how long a minion waits for an answer by Salt's defaults: request_channel_tries times
// request_channel_timeout. Until then a request that a worker of the master works on is sent to no other master, which
// would only do the same work again.
const longTimeout = 3 * time.Minute

// LongTimeout is the time that a call which may take long has (router.Long) where forwarded requests have
// forwardTimeout.
func LongTimeout(forwardTimeout time.Duration) time.Duration {
	return max(forwardTimeout, longTimeout)
}

// requestDeadline bounds a request from its arrival on.
func (p *Proxy) requestDeadline(x *request) time.Time { return x.at.Add(p.cfg.ForwardTimeout) }

// callDeadline is requestDeadline for a call, which may be one that takes long.
func (p *Proxy) callDeadline(c *call) time.Time {
	if router.Long(c.peek.Cmd) {
		return c.at.Add(LongTimeout(p.cfg.ForwardTimeout))
	}
	return p.requestDeadline(c.request)
}

// withDeadline is a context until the deadline of a request. It outlives the reader of the connection that the request
// came on.
func (p *Proxy) withDeadline(x *request) (context.Context, context.CancelFunc) {
	return context.WithDeadline(p.ctx, p.requestDeadline(x))
}

// peerContext bounds a call at another node.
func (p *Proxy) peerContext(c *call, to node.ID) (context.Context, context.CancelFunc) {
	if p.isReturn(c) && c.progress.KeepFor == to || isQuestion(c) {
		return context.WithTimeout(p.ctx, min(peerTimeout, p.cfg.ForwardTimeout))
	}
	return context.WithDeadline(p.ctx, p.callDeadline(c))
}

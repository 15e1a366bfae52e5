package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// A minion asks three times, with 5 to 10 s each (return_retry_timer), and drops a return that nobody has acknowledged.
// With Config.Returns it is acknowledged before that, whatever the master or the publisher of its job does:
const (
	// masterPatience is how long the local master has for a return that only it can take; then it is kept for it.
	masterPatience = 3 * time.Second
	// peerPatience is how long the publisher's node has; then the return is kept for it here.
	peerPatience = 4 * time.Second
)

// takesReturn says whether a call is a return that need not wait for a master.
func (p *Proxy) takesReturn(c *call) bool { return p.cfg.Returns != nil && router.IsReturn(c.peek.Cmd) }

// here carries a call out on this node. When its master does not take it, one of others gets it.
func (p *Proxy) here(c *call, others []node.ID) {
	if c.asks() && p.cfg.Returns != nil {
		p.published(c, others)
		return
	}
	if p.cfg.Events != nil && router.IsEvent(c.peek.Cmd) {
		p.fire(c, others)
		return
	}
	if p.takesMine(c) {
		p.mine(c, others)
		return
	}
	if !p.mayTake(c) {
		return
	}
	if !p.takesReturn(c) {
		p.whenOpen(c, func() {
			p.mistrustPillar(c)
			p.forward(c, others)
		})
		return
	}
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Take(c.asReturn(), func(reply []byte, err error) {
		defer p.wg.Done()
		switch {
		case err == nil:
			p.acknowledge(c, reply)
		case errors.Is(err, returns.ErrMalformed):
			p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
		case errors.Is(err, returns.ErrPython):
			p.wg.Go(func() { // a disk that hangs must not hold up the connection
				p.cfg.Returns.Mend(c.peek.JID, c.peek.ID)
				p.forward(c, others)
			})
		case returns.MasterMayTake(err):
			p.wg.Go(func() { p.forward(c, others) })
		default: // the goroutine may be the journal's
			p.handOff(c, c.self, err)
		}
	})
}

// handOff has another node keep a return for node to, the publisher of its job, when this node's journal fails. The local master
// must not get it: where the disk fails, a master answers and stores nothing. When no node keeps it, its minion gets no answer and
// sends it again.
func (p *Proxy) handOff(c *call, to node.ID, err error) {
	if c.from != "" { // the node that relayed it keeps it
		p.wg.Go(func() { p.passBack(c, "journal", false, err) })
		return
	}
	c.trace.Carry("journal", "peer")
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, min(peerPatience, p.cfg.ForwardTimeout))
		defer cancel()
		reply, failed := p.cfg.Returns.HandOff(ctx, to, c.asReturn())
		if failed != nil {
			p.lose(c.exchange, c.peek.Cmd, "journal", errors.Join(err, failed))
			return
		}
		p.metrics.request(c.peek.Cmd, "handed_off")
		p.acknowledge(c, reply)
	})
}

// fire lets the bus of the local master have an event without its Python. When that does not work nothing was fired, and the call
// goes the way of others.
func (p *Proxy) fire(c *call, others []node.ID) {
	c.trace.Step("bus")
	p.wg.Add(1)
	p.cfg.Events.Take(c.peek.ID, c.plain, c.at, func(reply []byte, err error) {
		defer p.wg.Done()
		switch {
		case err == nil:
			p.answer(c, "bus", c.seal(reply))
		case errors.Is(err, events.ErrMalformed):
			p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
		case errors.Is(err, events.ErrUnsure):
			p.lose(c.exchange, c.peek.Cmd, "bus", err)
		default: // the goroutine may be the service's
			p.wg.Go(func() { p.forward(c, others) })
		}
	})
}

// completeJob gives the return of a queued job the id of the job that was published: minions with unique_jid cut it (saltwire.CutJID). A
// signed load stays as it is; the id goes along with it, and Python alone would file it under the cut one.
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
	if err != nil || !c.replace(plain) {
		p.cfg.Logger.Warn("return of a queued job stays under the id that its minion has cut", "minion", c.peek.ID, "jid", c.peek.JID, "err", err)
	}
}

func (c *call) asReturn() returns.Request {
	return returns.Request{
		Cmd: c.peek.Cmd, JID: c.peek.JID, Minion: c.peek.ID, Load: c.plain, Received: c.at, From: c.from,
	}
}

// acknowledge answers a return that is in a journal.
func (p *Proxy) acknowledge(c *call, reply []byte) {
	p.answer(c, "journal", c.seal(reply))
}

// keep keeps a return for the publisher of its job, which cannot be reached. When the journal fails, another node keeps it; only what no
// journal takes goes to one of others.
func (p *Proxy) keep(c *call, to node.ID, others []node.ID, err error) {
	if !p.takesReturn(c) {
		p.elsewhere(c, others, "publisher", true, err)
		return
	}
	if !p.mayTake(c) {
		return
	}
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Keep(to, c.asReturn(), func(reply []byte, kept error) {
		defer p.wg.Done()
		if kept == nil {
			p.metrics.request(c.peek.Cmd, "kept")
			p.acknowledge(c, reply)
			return
		}
		if !returns.MasterMayTake(kept) {
			p.handOff(c, to, errors.Join(err, kept))
			return
		}
		p.wg.Go(func() { p.elsewhere(c, others, "publisher", true, errors.Join(err, kept)) })
	})
}

// later keeps a return that the local master does not take now until it does; false: that is not for this call.
func (p *Proxy) later(c *call, others []node.ID, unsent bool, err error) bool {
	if !p.takesReturn(c) || c.late || c.shared || c.gone() && !unsent {
		return false
	}
	c.late = true
	c.trace.Step("journal")
	p.wg.Add(1)
	p.cfg.Returns.Defer(c.asReturn(), func(reply []byte, kept error) {
		defer p.wg.Done()
		if kept == nil {
			p.metrics.request(c.peek.Cmd, "later")
			p.acknowledge(c, reply)
			return
		}
		p.wg.Go(func() { p.elsewhere(c, others, "local", unsent, errors.Join(err, kept)) })
	})
	return true
}

// atMaster bounds a call at the local master.
func (p *Proxy) atMaster(c *call) (until time.Time) {
	if p.takesReturn(c) && !c.shared && !c.late && p.cfg.Returns.Defers() {
		return time.Now().Add(min(masterPatience, p.cfg.ForwardTimeout))
	}
	return p.untilLong(c)
}

// atPeer bounds a call at another node.
func (p *Proxy) atPeer(c *call, to node.ID) (context.Context, context.CancelFunc) {
	if p.takesReturn(c) && c.job == to || c.asks() {
		return context.WithTimeout(p.ctx, min(peerPatience, p.cfg.ForwardTimeout))
	}
	return context.WithDeadline(p.ctx, p.untilLong(c))
}

// Return gives the local master a load that a minion sent earlier (returns.Python), sealed with what the master holds for
// the minion now.
func (p *Proxy) Return(ctx context.Context, minion string, load []byte) error {
	pub, ok := p.cfg.Keys.Accepted(minion)
	if !ok {
		return returns.ErrGone
	}
	s, err := p.sessions.get(minion, pub)
	if err != nil {
		return fmt.Errorf("%w: %w", returns.ErrGone, err)
	}
	if wait := p.cfg.Keys.OnDisk(minion); wait != nil {
		if err := wait(ctx); err != nil {
			return fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
	}
	for range 2 {
		local, _, err := p.cfg.Sessions.Ensure(minion, s.key)
		if err != nil {
			return fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
		reply, err := p.ask(ctx, minion, saltcrypt.NewCrypticle(local).Seal(nil, load, nil))
		if upstream.Retryable(err) {
			err = fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
		if err != nil {
			return err
		}
		if string(reply) != string(badLoad) {
			return nil
		}
		p.cfg.Sessions.Invalidate(minion)
	}
	return returns.ErrRefused
}

// ask sends one sealed load of a minion to the local master and waits for the answer.
func (p *Proxy) ask(ctx context.Context, minion string, sealed []byte) ([]byte, error) {
	env := saltwire.Envelope{Enc: saltwire.EncAES, Version: sessionVersion, HasVersion: true, ID: minion, Load: sealed}
	type answer struct {
		reply []byte
		err   error
	}
	got := make(chan answer, 1)
	p.cfg.Master.Go(ctx, time.Now().Add(p.cfg.ForwardTimeout), "", saltwire.AppendEnvelope(nil, env), func(reply []byte, err error) { got <- answer{reply, err} })
	a := <-got
	return a.reply, a.err
}

// Up says whether the local master answers (returns.Python).
func (p *Proxy) Up() bool { return p.cfg.Master.Up() }

var _ returns.Python = (*Proxy)(nil)

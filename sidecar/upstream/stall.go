package upstream

import (
	"context"
	"slices"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/zmtp"
	"saltclusterd/signal"
)

// A master can be there without working. PINGs are answered by its I/O thread, whatever Python does: when they are not,
// the process stands still (SIGSTOP, a host that hangs). Replies come from its workers. While they are only busy, one
// reply or another comes every few seconds; when none comes to anything for StuckAfter, nor to small requests that are
// sent only to find out, none of them works. While each of them may be busy with a call that takes long by its nature
// (Long, Waiting), that takes BusyAtMost instead of StuckAfter. In both cases calls fail at once, so that another
// master can be asked, and connections are kept: the first sign of life on one of them ends it.

// Stall says how a connected master does not work; empty: it does.
type Stall string

// The signs.
const (
	Silent Stall = "silent" // no PING is answered
	Stuck  Stall = "stuck"  // PINGs are, requests are not
)

const (
	// maxProbes bounds the small requests that wait for an answer. They are dealt to the master's workers in turn, so that
	// several find one that is not in the middle of something long; those that do not are given up for others, the oldest
	// first, or one worker that is busy for minutes would get them all in the end. Not while the master stands still: it
	// has to work off what it was asked.
	maxProbes = 8
	// idleProbe is how many times ProbeAfter must pass without a reply before a probe is sent although no call waits.
	idleProbe = 5
)

// setSilent takes what a connection says of its master's I/O thread.
func (c *ReqClient) setSilent(is bool) {
	c.mu.Lock()
	if is {
		fail := c.markStalled(Silent)
		c.mu.Unlock()
		fail()
		return
	}
	if c.stalled == Silent {
		c.endStall()
	}
	c.mu.Unlock()
}

// markStalled stops taking calls; what it returns fails those under way, without the lock. Wants mu.
func (c *ReqClient) markStalled(s Stall) (fail func()) {
	if c.closed || c.state != up || c.stalled != "" {
		return func() {}
	}
	c.stalled = s
	c.showUp()
	if s == Silent {
		c.metrics.silents.Inc()
	} else {
		c.metrics.stucks.Inc()
	}
	waiting := c.queue.takeAll()
	c.metrics.queue.Set(0)
	var lost []*call
	for cn := range c.conns {
		if ca := cn.call; ca != nil {
			cn.call, ca.stage, ca.conn = nil, over, nil
			lost = append(lost, ca)
		}
		if cn.drain != nil { // its reply would be the sign that is waited for
			cn.drain.Stop()
			cn.drain = nil
		}
	}
	return func() {
		c.cfg.Logger.Warn("salt-master stands still", "remote", c.cfg.Addr, "reason", string(s), "calls", len(lost))
		failAll(waiting, ErrDown)
		failAll(lost, ErrLost)
	}
}

// endStall takes calls again. Connections that still owe a reply are given some time for it. Wants mu.
func (c *ReqClient) endStall() {
	if c.stalled == "" || c.closed {
		return
	}
	c.stalled, c.lastReply = "", time.Now()
	c.rose = c.lastReply
	c.showUp()
	for cn := range c.conns {
		if cn.owed && cn.call == nil && cn.drain == nil {
			cn.drain = time.AfterFunc(c.cfg.DrainTimeout, func() { c.dropStale(cn, 0) })
		}
	}
	c.cfg.Logger.Info("salt-master works again", "remote", c.cfg.Addr)
	signal.Send(c.risen)
	signal.Send(c.wake)
}

// noteProgress notes that a worker of the master has answered something. Wants mu.
func (c *ReqClient) noteProgress() {
	c.lastReply = time.Now()
	c.endStall()
}

// watchWorkers looks for a master whose workers do not work.
func (c *ReqClient) watchWorkers() {
	if c.cfg.Probe == nil {
		return
	}
	tick := time.NewTimer(backoff.Align(max(c.cfg.ProbeAfter/2, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			tick.Reset(backoff.Align(max(c.cfg.ProbeAfter/2, time.Millisecond)))
			c.checkWorkers(time.Now())
		}
	}
}

// checkWorkers sends a probe when one is due, and declares the master stuck when it is.
func (c *ReqClient) checkWorkers(now time.Time) {
	c.mu.Lock()
	quiet := now.Sub(c.lastReply)
	since, asked := c.owedSince()
	fail := func() {}
	if asked && min(quiet, now.Sub(since)) > c.stuckAfter() {
		fail = c.markStalled(Stuck)
	}
	due := c.state == up && !c.closed && (len(c.probes) < maxProbes || c.stalled == "") &&
		now.Sub(c.probed) >= c.cfg.ProbeAfter &&
		quiet > c.cfg.ProbeAfter && (asked || c.stalled != "" || quiet > idleProbe*c.cfg.ProbeAfter)
	if due {
		c.sendProbe(now)
	}
	c.mu.Unlock()
	fail()
}

// sendProbe sends a small request. Wants mu.
func (c *ReqClient) sendProbe(now time.Time) {
	ctx, giveUp := context.WithTimeout(c.ctx, 4*c.cfg.StuckAfter)
	p := &probe{c: c, asked: now, giveUp: giveUp}
	c.addProbe(p)
	c.wg.Go(func() { p.runProbe(ctx) })
}

// countOwed counts the requests that the master has not answered.
func (c *ReqClient) countOwed() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cn := range c.conns {
		if cn.owed {
			n++
		}
	}
	return n
}

// stuckAfter is the time without any reply after which no worker works. It is longer while each of them may be busy
// with a call that takes long. A call that was given up does not count. Wants mu.
func (c *ReqClient) stuckAfter() time.Duration {
	long := 0
	for cn := range c.conns {
		if cn.owed && cn.long && cn.call != nil {
			long++
		}
	}
	if long >= c.cfg.Workers {
		return c.cfg.BusyAtMost
	}
	return c.cfg.StuckAfter
}

func isLong(from string) bool {
	return strings.HasPrefix(from, Long) || strings.HasPrefix(from, Waiting)
}

// owedSince says since when the master owes an answer to anything. Wants mu.
func (c *ReqClient) owedSince() (since time.Time, asked bool) {
	note := func(t time.Time) {
		if !asked || t.Before(since) {
			since, asked = t, true
		}
	}
	for cn := range c.conns {
		if cn.owed {
			note(cn.asked)
		}
	}
	if t, waits := c.probedSince(); waits {
		note(t)
	}
	return since, asked
}

// probing is the probes that wait, and what they and other requests have told of the master's workers.
type probing struct {
	probes    []*probe  // the oldest first
	probed    time.Time // when the last one was sent
	owing     time.Time // when the first one was sent of those that wait, or waited until another took their place
	lastReply time.Time // to anything
}

// addProbe adds a probe, which may take the place of the oldest one.
func (g *probing) addProbe(p *probe) {
	if len(g.probes) == 0 {
		g.owing = p.asked
	}
	if len(g.probes) >= maxProbes {
		g.probes[0].giveUp()
		g.probes = g.probes[1:]
	}
	g.probed, g.probes = p.asked, append(g.probes, p)
}

// removeProbe forgets a probe that has ended.
func (g *probing) removeProbe(p *probe) {
	g.probes = slices.DeleteFunc(g.probes, func(o *probe) bool { return o == p })
}

// probedSince says since when probes wait for any reply.
func (g *probing) probedSince() (since time.Time, waits bool) {
	return slices.MaxFunc([]time.Time{g.owing, g.lastReply}, time.Time.Compare), len(g.probes) > 0
}

// probe is one small request on a connection of its own.
type probe struct {
	c      *ReqClient
	asked  time.Time
	giveUp context.CancelFunc
}

// runProbe asks, and waits for the answer until the master is given up as a whole or this probe is.
func (p *probe) runProbe(ctx context.Context) {
	err := p.askMaster(ctx)
	p.giveUp()
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.removeProbe(p)
	if err == nil {
		p.c.metrics.probes.Observe(time.Since(p.asked).Seconds())
		p.c.noteProgress()
	}
}

func (p *probe) askMaster(ctx context.Context) error {
	raw, err := p.c.cfg.Dial(ctx, "tcp", p.c.cfg.Addr)
	if err != nil {
		return err
	}
	z, err := zmtp.NewClient(ctx, raw, p.c.cfg.clientOptions())
	if err != nil {
		return err
	}
	defer z.Close()
	stop := context.AfterFunc(ctx, func() { _ = z.Close() })
	defer stop()
	if err := z.WriteMessage(delimiter, p.c.cfg.Probe); err != nil {
		return err
	}
	_, err = z.ReadMessage()
	return err
}

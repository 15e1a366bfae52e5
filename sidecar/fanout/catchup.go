package fanout

import (
	"context"
	"slices"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/late"
)

const (
	// lateFrom is the age from which on a publication of a peer is given with care: a minion may have had it elsewhere.
	lateFrom = 2 * time.Second
	// lateAfter is how long a subscriber has listened when it is given what it may have missed: a minion that holds an
	// older AES key signs in meanwhile, because of the nudge that it gets at once.
	lateAfter = time.Second
	// lateAgain is when it is given the same once more after a change of the AES key, and when those that were there then
	// are given what came meanwhile. A 3006 minion that signs in while several publications wait opens the newest
	// first, and drops the others for their serials (salt/crypt.py Crypticle.loads). A sign-in that goes to a node that
	// dies is tried again 5 s later, up to seven times (auth_timeout, auth_tries). So this is repeated, each time after
	// twice as long, while what came at the change is kept.
	lateAgain = 6 * time.Second
	// movedFrom is how long before a subscriber was told of another AES key what it is given after that has come at
	// least. Its minion may have begun to sign in then, for another reason.
	movedFrom = 2 * time.Second
	// lateTick is how often it is looked whether it is time.
	lateTick = 250 * time.Millisecond
	// latePause is between two times that something is given: all that is given is sealed and signed anew each time.
	latePause = time.Second
	// lateBurst is how many bytes are given at a time at most, to one subscriber at least: strangers can also subscribe,
	// and must not take the network from others.
	lateBurst = 32 << 20
	// lateBatch is how many publications are sealed before others may publish in between.
	lateBatch = 8
	// lateMargin is how much younger than a publication a process may be and get it: the one before had ended when it was
	// published. Python and Salt need more than a second from there to a sign-in; the rest is what the ages of both may be
	// off.
	lateMargin = 500 * time.Millisecond
	// unheard is how long before a node was last heard it may have lost what it was to deliver.
	unheard = time.Second
)

// catchUp gives subscribers that have just come what they may have missed, and publishes what a peer brings late.
type catchUp struct {
	h       *Hub
	waiting []arrival
	moved   []arrival // subscribers that were there, and sign in anew
	overdue []overdue
	epoch   uint64    // in force when it was looked last
	changed time.Time // when it was found to have become that
	next    time.Time // when something may be given again
	nudge   []byte    // of that epoch
	// movedTurn says that something was given last to those that have just come.
	movedTurn bool
}

// arrival is a number of subscribers that came together.
type arrival struct {
	who   []edge.Newcomer
	came  time.Time
	due   time.Time
	since time.Time // they are given nothing from before; when they are served, or were moved
}

// putOff sets when they are given the same again, after it was given now; false: never.
func (a *arrival) putOff(now time.Time) bool {
	wait := max(lateAgain, 2*now.Sub(a.came))
	a.due = a.came.Add(wait)
	return wait < MaxAge
}

// overdue is a publication that a peer has brought late.
type overdue struct {
	late.Publication
	came time.Time
}

func (c *catchUp) runLoop(ctx context.Context) {
	tick := time.NewTimer(lateTick)
	defer tick.Stop()
	for armed := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.h.cfg.Edge.Arrived():
			come, moved := c.h.cfg.Edge.Newcomers()
			if c.noteArrivals(come) {
				c.nudgeAll(come)
			}
			c.takeMoved(moved)
		case <-c.h.again:
			c.waiting = nil // they are among all
			c.noteArrivals(c.h.cfg.Edge.AllSubscribers())
		case <-c.h.overdueGrew:
			c.takeOverdue()
		case <-tick.C:
			armed = false
			now := c.h.now()
			c.noteEpoch(now)
			c.publishOverdue(ctx, now)
			c.serveNext(ctx, now)
		}
		busy := len(c.waiting) > 0 || len(c.overdue) > 0 || len(c.moved) > 0
		c.h.busy.Store(busy)
		if busy && !armed {
			tick.Reset(lateTick)
			armed = true
			c.h.beatNow() // what waits, waits for the answers
		}
	}
}

// noteArrivals notes subscribers that have come. While nothing was published of late there is nothing to do for them:
// false.
func (c *catchUp) noteArrivals(who []edge.Newcomer) bool {
	now := c.h.now()
	if len(who) == 0 || c.h.memory.Bytes() == 0 {
		return false
	}
	c.waiting = append(c.waiting, arrival{who: who, came: now, due: now.Add(lateAfter)})
	return true
}

// takeMoved notes subscribers that were there and were told of another AES key. What those missed that were told of an
// earlier one a short while ago is given with it: twice at a time, a minion would refuse the second for its serial.
func (c *catchUp) takeMoved(who []edge.Newcomer) {
	if len(who) == 0 {
		return
	}
	now := c.h.now()
	since, again := now.Add(-movedFrom), make(map[edge.Newcomer]bool, len(who))
	for _, n := range who {
		again[n] = true
	}
	for i := range c.moved {
		a := &c.moved[i]
		before := len(a.who)
		a.who = slices.DeleteFunc(a.who, func(n edge.Newcomer) bool { return again[n] })
		if len(a.who) < before {
			since = earlierOf(since, a.since)
		}
	}
	c.moved = append(c.moved, arrival{who: who, came: now, due: now.Add(lateAgain), since: since})
}

// takeOverdue takes what has come late, and drops the first of what is too much together.
func (c *catchUp) takeOverdue() {
	c.h.overdueMu.Lock()
	c.overdue = append(c.overdue, c.h.overdue...)
	c.h.overdue = nil
	c.h.overdueMu.Unlock()
	bytes, keep := 0, len(c.overdue)
	for keep > 0 && len(c.overdue)-keep < lateCount && bytes+len(c.overdue[keep-1].Plain) <= outboxBytes {
		keep--
		bytes += len(c.overdue[keep].Plain)
	}
	c.h.metrics.late.WithLabelValues("unknown").Add(float64(keep))
	c.overdue = slices.Delete(c.overdue, 0, keep)
}

// noteEpoch notes a change of the epoch.
func (c *catchUp) noteEpoch(now time.Time) {
	if n := c.h.epochNumber(); n != c.epoch {
		c.epoch, c.changed, c.nudge = n, now, nil
	}
}

// nudgeAll makes those sign in which hold an older AES key.
func (c *catchUp) nudgeAll(who []edge.Newcomer) {
	c.noteEpoch(c.h.now())
	if c.nudge == nil {
		var err error
		if c.nudge, err = c.h.Nudge(); err != nil { // no epoch: no minion can sign in either
			return
		}
	}
	c.h.sealMu.Lock()
	defer c.h.sealMu.Unlock()
	c.h.cfg.Edge.Give(who, []edge.Publication{{Body: c.nudge}})
}

// publishOverdue gives to all what a peer has brought late, as soon as that is safe.
func (c *catchUp) publishOverdue(ctx context.Context, now time.Time) {
	var ready []late.Publication
	c.overdue = slices.DeleteFunc(c.overdue, func(o overdue) bool {
		from, known := c.h.knownFrom(o.came, now)
		switch {
		case known && !o.At.Before(from) && now.Sub(o.At) < MaxAge:
			ready = append(ready, o.Publication)
		case !known && now.Sub(o.At) < MaxAge:
			return false
		default:
			c.h.metrics.late.WithLabelValues("unknown").Inc()
			c.h.cfg.Logger.Warn("publication of a peer was late and is not sent to connected minions: not all nodes report which minions have started since",
				"jid", o.JID)
		}
		return true
	})
	c.h.sealCopies(ctx, ready, 1, func(copies []edge.Publication) {
		for _, p := range copies {
			c.h.cfg.Edge.Publish(p)
		}
	})
}

// serveNext gives those that have just come, or those that were told of another AES key, what they may have missed.
// They take turns: strangers who subscribe time and again must not keep minions waiting that were there.
func (c *catchUp) serveNext(ctx context.Context, now time.Time) {
	if c.movedTurn {
		c.serveMoved(ctx, now)
	}
	c.serveDue(ctx, now)
	c.serveMoved(ctx, now)
}

// serveDue gives those whose time has come what is safe to give.
func (c *catchUp) serveDue(ctx context.Context, now time.Time) {
	if now.Before(c.next) {
		return
	}
	var ready []arrival
	left := make([]arrival, 0, len(c.waiting))
	for _, a := range c.waiting {
		if a.who = slices.DeleteFunc(a.who, edge.Newcomer.Gone); len(a.who) == 0 {
			continue
		}
		since, known := c.h.knownFrom(a.came, now)
		switch {
		case now.Before(a.due) || !known && now.Sub(a.came) < MaxAge:
			left = append(left, a)
		case !known:
			c.h.metrics.late.WithLabelValues("unknown").Add(float64(len(a.who)))
			c.h.cfg.Logger.Warn("publications of the last minute not sent to subscribers: not all nodes report which minions have started since",
				"subscribers", len(a.who))
		default:
			a.since = since
			ready = append(ready, a)
		}
	}
	served, later := splitFairly(ready, max(1, lateBurst/max(1, c.h.memory.Bytes())), edge.Newcomer.Network)
	var who []edge.Newcomer
	from := now.Add(-MaxAge)
	for _, a := range served {
		who = append(who, a.who...)
		from = laterOf(from, a.since)
		if now.Sub(c.changed) < MaxAge && a.putOff(now) {
			left = append(left, a)
		}
	}
	c.waiting = append(later, left...)
	if len(who) > 0 {
		c.giveTo(ctx, now, who, c.h.memory.Since(from))
		c.movedTurn = true
	}
}

// serveMoved gives those that were told of another AES key what came while they signed in, as far as that is safe. That
// includes what a peer brought late: when a cut is over, this node learns of the key and of jobs at the same time.
func (c *catchUp) serveMoved(ctx context.Context, now time.Time) {
	if now.Before(c.next) {
		return
	}
	var due, left []arrival
	since, came, until := now, time.Time{}, time.Time{}
	for i := range c.moved {
		a := &c.moved[i]
		a.who = slices.DeleteFunc(a.who, edge.Newcomer.Gone)
		switch {
		case len(a.who) == 0:
		case now.Before(a.due):
			left = append(left, *a)
		default:
			due = append(due, *a)
			since, came, until = earlierOf(since, a.since), laterOf(came, a.came), laterOf(until, a.due)
		}
	}
	if len(due) == 0 {
		c.moved = left
		return
	}
	from, known := c.h.knownFrom(came, now)
	if !known && now.Sub(came) < MaxAge {
		return // a peer has not told yet
	}
	var pubs []late.Publication
	if known {
		pubs = slices.DeleteFunc(c.h.memory.Since(from),
			func(p late.Publication) bool { return p.Came.Before(since) || p.At.After(until) })
	}
	bytes := 0
	for _, p := range pubs {
		bytes += len(p.Plain)
	}
	served, later := splitFairly(due, max(1, lateBurst/max(1, bytes)), edge.Newcomer.Network)
	var who []edge.Newcomer
	for _, a := range served {
		who = append(who, a.who...)
		if a.putOff(now) {
			left = append(left, a)
		}
	}
	c.moved = append(later, left...)
	if len(pubs) > 0 {
		c.giveTo(ctx, now, who, pubs)
		c.movedTurn = false
	}
}

// giveTo gives publications to subscribers, and makes a pause then.
func (c *catchUp) giveTo(ctx context.Context, now time.Time, who []edge.Newcomer, pubs []late.Publication) {
	given := 0
	c.h.sealCopies(ctx, pubs, len(who), func(copies []edge.Publication) { given += c.h.cfg.Edge.Give(who, copies) })
	c.h.metrics.late.WithLabelValues("given").Add(float64(given))
	if len(pubs) > 0 {
		c.h.cfg.Logger.Info("publications of the last minute sent to subscribers that may have missed them",
			"publications", len(pubs), "subscribers", len(who))
	}
	c.next = now.Add(latePause)
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// knownFrom reports whether it is known which processes of minions signed in until came, wherever, and so from when on
// publications may be given. At a node that no other node reaches, no new process has signed in since the node was
// heard last (Hub.cutOff), for MaxAge at least; where its host refuses connections to it, for longer. What it did just
// before it was heard last is not known, unless its process has ended and had told all; nor what its run before did.
func (h *Hub) knownFrom(came, now time.Time) (from time.Time, ok bool) {
	if h.cfg.Minority() || h.cfg.Withhold() {
		return from, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, l := range h.links {
		heard, ended := h.in.since, l.refused.refusedSince()
		if o := h.in.findOrigin(id); o != nil {
			if gap := o.gap.Load(); gap > 0 {
				from = laterOf(from, h.beats.timeOf(gap).Add(-unheard))
			}
			if o.told.Load() >= h.beats.sinceStart(came) {
				continue
			}
			if l.refused.refusesNow(now) && o.toldAll(&h.beats, ended, now) {
				continue
			}
			if at := o.heard.Load(); at > 0 {
				heard = h.beats.timeOf(at)
			}
		}
		if !h.isAway(id, l, heard, now) {
			return from, false
		}
		from = laterOf(from, heard.Add(-unheard))
	}
	return from, true
}

// isAway reports whether no new process can have signed in at a peer since the peer was heard last.
func (h *Hub) isAway(id node.ID, l *linked, heard, now time.Time) bool {
	if l.refused.refusesNow(now) {
		return true
	}
	return h.cfg.Away(id) && now.Sub(heard) < MaxAge
}

// sealCopies makes copies of publications that leave out the minions of which a process has started since, for so many
// subscribers, and has do hand them on, some at a time; nothing else is published while do is at work.
func (h *Hub) sealCopies(ctx context.Context, pubs []late.Publication, subscribers int, do func([]edge.Publication)) {
	if len(pubs) == 0 || !h.in.waitThaw(ctx) {
		return
	}
	defer h.in.leave()
	h.cfg.Hold()
	for batch := range slices.Chunk(pubs, lateBatch) {
		addressed := make([]fanned, 0, len(batch))
		for _, p := range batch {
			if h.memory.IsStopped(p) {
				h.metrics.late.WithLabelValues("stopped").Add(float64(subscribers))
				continue
			}
			plain, err := late.Address(p.Plain, h.cfg.LeaveOut(h.processes.Since(p.At.Add(lateMargin)), h.now().Sub(p.At)))
			if err != nil {
				h.metrics.late.WithLabelValues("target").Add(float64(subscribers))
				h.cfg.Logger.Debug("late publication not sent", "jid", p.JID, "err", err)
				continue
			}
			addressed = append(addressed, fanned{plain, p.Topics})
		}
		if err := h.sealBatch(addressed, do); err != nil {
			h.cfg.Logger.Error("late publications not sent", "err", err)
			return
		}
	}
	h.beatNow() // they had serials that the peers do not know of
}

// fanned is the load of a copy, and its topics.
type fanned struct {
	plain  []byte
	topics []string
}

func (h *Hub) sealBatch(batch []fanned, do func([]edge.Publication)) error {
	h.sealMu.Lock()
	defer h.sealMu.Unlock()
	copies := make([]edge.Publication, 0, len(batch))
	for _, p := range batch {
		cur, prev, err := h.sealer.sealStamped(p.plain)
		if err != nil {
			return err
		}
		copies = append(copies, edge.Publication{Body: cur, Prev: prev, Topics: p.topics})
	}
	do(copies)
	return nil
}

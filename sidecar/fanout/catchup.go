package fanout

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/late"
)

const (
	// lateFrom is the age from which on a publication of a peer is given as to subscribers that have just come.
	lateFrom = time.Second
	// lateAfter is how long a subscriber has listened when it is given what it may have missed: a minion that holds an older AES key
	// signs in meanwhile, for the nudge that it gets at once.
	lateAfter = time.Second
	// lateAgain is when it is given the same once more after a change of the AES key. A 3006 minion that signs in while several
	// publications wait opens the newest first, and drops the others for their serials (salt/crypt.py Crypticle.loads).
	lateAgain = 6 * time.Second
	// lateTick is how often it is looked whether it is time.
	lateTick = 250 * time.Millisecond
	// latePause is between two times that something is given: all that is given is sealed and signed anew each time.
	latePause = time.Second
	// lateBurst is how many bytes are given at a time at most, to one subscriber at least: strangers can subscribe, too, and must not
	// take the network from others.
	lateBurst = 32 << 20
	// lateMargin is by how much a process must be older than a publication at least: what the ages of both may be off.
	lateMargin = 250 * time.Millisecond
	// unheard is how long before a node was last heard it may have lost what it was to deliver.
	unheard = time.Second
)

// catchUp gives subscribers that have just come what they may have missed.
type catchUp struct {
	h       *Hub
	waiting []arrival
	epoch   uint64    // in force when it was looked last
	changed time.Time // when it was found to have become that
	next    time.Time // when something may be given again
}

// arrival is a number of subscribers that came together.
type arrival struct {
	who   []edge.Newcomer
	came  time.Time
	due   time.Time
	again bool // they have been given it once
	all   bool // who were there when something came late
}

func (c *catchUp) run(ctx context.Context) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.h.cfg.Edge.Arrived():
			if who := c.h.cfg.Edge.Newcomers(); c.take(who, false) {
				c.nudge(who)
			}
		case <-c.h.overdue:
			c.waiting = slices.DeleteFunc(c.waiting, func(a arrival) bool { return a.all })
			c.take(c.h.cfg.Edge.Everybody(), true)
		case <-tick.C:
			c.serve(ctx, time.Now())
		}
		if len(c.waiting) > 0 {
			tick.Reset(lateTick)
		}
	}
}

// take notes subscribers that have come. While nothing was published of late there is nothing to do for them: false.
func (c *catchUp) take(who []edge.Newcomer, all bool) bool {
	now := time.Now()
	if len(who) == 0 || len(c.h.memory.Since(now.Add(-MaxAge))) == 0 {
		return false
	}
	c.waiting = append(c.waiting, arrival{who: who, came: now, due: now.Add(lateAfter), all: all})
	return true
}

// nudge makes those sign in which hold an older AES key.
func (c *catchUp) nudge(who []edge.Newcomer) {
	nudge, err := c.h.Nudge()
	if err != nil { // no epoch: nobody can sign in either
		return
	}
	c.h.sealMu.Lock()
	defer c.h.sealMu.Unlock()
	c.h.cfg.Edge.Give(who, []edge.Publication{{Body: nudge}})
}

// serve gives those whose time has come what is safe to give.
func (c *catchUp) serve(ctx context.Context, now time.Time) {
	if n := c.h.epoch(); n != c.epoch {
		c.epoch, c.changed = n, now
	}
	if now.Before(c.next) {
		return
	}
	room := max(1, lateBurst/max(1, c.h.memory.Bytes()))
	var who []edge.Newcomer
	from, left := now.Add(-MaxAge), make([]arrival, 0, len(c.waiting))
	for _, a := range c.waiting {
		if a.who = slices.DeleteFunc(a.who, edge.Newcomer.Gone); len(a.who) == 0 {
			continue
		}
		since, known := c.h.known(a.came)
		switch {
		case now.Before(a.due) || len(who) == room:
			left = append(left, a)
		case !known && now.Sub(a.came) < MaxAge:
			left = append(left, a)
		case !known:
			c.h.metrics.late.WithLabelValues("unknown").Add(float64(len(a.who)))
			c.h.cfg.Logger.Warn("publications of the last minute not given to subscribers: not all nodes say which minions have started since",
				"count", len(a.who))
		default:
			if n := min(len(a.who), room-len(who)); n < len(a.who) {
				rest := a
				a.who, rest.who = a.who[:n:n], a.who[n:]
				left = append(left, rest)
			}
			who = append(who, a.who...)
			if since.After(from) {
				from = since
			}
			if !a.again && now.Sub(c.changed) < MaxAge {
				a.due, a.again = now.Add(lateAgain), true
				left = append(left, a)
			}
		}
	}
	c.waiting = left
	if len(who) > 0 {
		c.h.giveLate(ctx, who, from)
		c.next = now.Add(latePause)
	}
}

// known reports whether it is known which processes of minions signed in until came, wherever, and so from when on publications may
// be given. At a node that nobody reaches, nobody has signed in since it was heard last; what it did just before is not known.
func (h *Hub) known(came time.Time) (from time.Time, ok bool) {
	if h.cfg.Minority() || h.cfg.Withhold() {
		return from, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.links {
		heard := h.in.since
		if o := h.in.known(id); o != nil {
			if o.told.Load() >= h.beats.at(came) {
				continue
			}
			if at := o.heard.Load(); at > 0 {
				heard = h.beats.began.Add(time.Duration(at))
			}
		}
		if !h.cfg.Away(id) {
			return from, false
		}
		if at := heard.Add(-unheard); at.After(from) {
			from = at
		}
	}
	return from, true
}

// giveLate gives subscribers what was published since from.
func (h *Hub) giveLate(ctx context.Context, who []edge.Newcomer, from time.Time) {
	if !h.in.enter(ctx) {
		return
	}
	defer h.in.gate.RUnlock()
	pubs := h.memory.Since(from)
	if len(pubs) == 0 {
		return
	}
	h.cfg.Hold()
	h.sealMu.Lock()
	defer h.sealMu.Unlock()
	copies := make([]edge.Publication, 0, len(pubs))
	started := 0 // since the first of them
	for _, p := range pubs {
		leaveOut := h.processes.Since(p.At.Add(-lateMargin))
		started = max(started, len(leaveOut))
		plain, err := late.Address(p.Plain, leaveOut)
		if err != nil {
			if !errors.Is(err, late.ErrTarget) {
				h.cfg.Logger.Error("publication not given late", "jid", p.JID, "err", err)
			}
			h.metrics.late.WithLabelValues("target").Add(float64(len(who)))
			continue
		}
		cur, prev, err := h.sealer.seal(plain)
		if err != nil {
			h.cfg.Logger.Error("publication not given late", "jid", p.JID, "err", err)
			return
		}
		copies = append(copies, edge.Publication{Body: cur, Prev: prev, Topics: p.Topics})
	}
	given := h.cfg.Edge.Give(who, copies)
	h.metrics.late.WithLabelValues("given").Add(float64(given))
	h.cfg.Logger.Info("publications of the last minute given to subscribers that have just come", "publications", len(copies),
		"subscribers", len(who), "left_out", started)
}

// beats stamps heartbeats with this node's time, in a way that no other run of its daemon does.
type beats struct {
	base  uint64 // no less than 1
	began time.Time
}

func newBeats() beats { return beats{base: 1 + rand.Uint64N(1<<62), began: time.Now()} }

func (b *beats) stamp(now time.Time) uint64 { return b.base + uint64(now.Sub(b.began).Microseconds()) }

// answered notes that o has heard the heartbeat with that stamp before it sent what was just read.
func (b *beats) answered(o *origin, stamp uint64) {
	if stamp < b.base || stamp > b.stamp(time.Now()) {
		return
	}
	storeMax(&o.told, int64(stamp-b.base)*int64(time.Microsecond))
}

// at is t as nanoseconds since the daemon began, by a clock that nobody sets.
func (b *beats) at(t time.Time) int64 { return int64(t.Sub(b.began)) }

func storeMax(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if old >= to || v.CompareAndSwap(old, to) {
			return
		}
	}
}

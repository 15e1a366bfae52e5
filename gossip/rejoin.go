package gossip

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// rejoinAtOnce bounds the attempts that run at the same time.
const rejoinAtOnce = 4

// lookInterval is how often the roster is compared with what is alive, besides every event.
const lookInterval = time.Second

// attempt is the state of reaching one missing node.
type attempt struct {
	addr    netip.AddrPort
	pause   backoff.Backoff
	next    time.Time
	running bool
}

// runRejoiner contacts nodes of the roster that are not alive, for as long as gossip runs. Contacting one is enough to
// hear of all.
func (g *Gossip) runRejoiner(seeds []string) {
	r := &rejoiner{g: g, attempts: map[node.ID]*attempt{}, places: make(chan struct{}, rejoinAtOnce)}
	defer r.wg.Wait()
	r.contactSeeds(seeds)
	tick := time.NewTimer(backoff.Align(min(lookInterval, g.cfg.Timing.RejoinMin)))
	defer tick.Stop()
	for {
		r.startDue(time.Now())
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
			tick.Reset(backoff.Align(min(lookInterval, g.cfg.Timing.RejoinMin)))
		case <-g.nudged:
		}
	}
}

type rejoiner struct {
	g      *Gossip
	wg     sync.WaitGroup
	places chan struct{}

	mu       sync.Mutex
	attempts map[node.ID]*attempt
}

// contactSeeds tries the given addresses at once, as far as they belong to members.
func (r *rejoiner) contactSeeds(addrs []string) {
	for _, text := range addrs {
		addr, err := node.ParseAddr(text)
		if err != nil {
			r.g.log.Warn("gossip seed ignored", "remote", text, "err", err)
			continue
		}
		for _, e := range r.g.cfg.Roster.Entries() {
			if e.Addr == addr && e.ID != r.g.cfg.ID {
				r.startAttempt(e, time.Now())
			}
		}
	}
}

// startDue starts attempts that are due, and forgets those no longer needed.
func (r *rejoiner) startDue(now time.Time) {
	missing := map[node.ID]bool{}
	for _, m := range r.g.table.listMembers() {
		if m.ID != r.g.cfg.ID && m.State != Alive {
			missing[m.ID] = true
			r.startAttempt(node.Entry{ID: m.ID, Addr: m.Addr}, now)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, a := range r.attempts {
		if !missing[id] && !a.running {
			delete(r.attempts, id)
		}
	}
}

// startAttempt begins an attempt unless one is running, the pause is not over, or all places are taken.
func (r *rejoiner) startAttempt(e node.Entry, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[e.ID]
	if a == nil || a.addr != e.Addr && !a.running {
		t := r.g.cfg.Timing
		// Jitter, lest all nodes call a returning one at the same moment.
		a = &attempt{addr: e.Addr, pause: backoff.Backoff{Min: t.RejoinMin, Max: t.RejoinMax, Jitter: true}}
		r.attempts[e.ID] = a
	}
	if a.running || now.Before(a.next) {
		return
	}
	select {
	case r.places <- struct{}{}:
	default:
		return // the next look finds it due
	}
	a.running = true
	r.wg.Go(func() { r.contactNode(e, a) })
}

func (r *rejoiner) contactNode(e node.Entry, a *attempt) {
	_, err := r.g.list.Join([]string{string(e.ID) + "/" + e.Addr.String()})
	if err != nil && r.g.ctx.Err() == nil && !errors.Is(err, errShutdown) {
		r.g.log.Debug("member not reached by gossip", "node", e.ID.String(), "err", err)
	}
	<-r.places
	r.mu.Lock()
	defer r.mu.Unlock()
	a.running = false
	a.next = time.Now().Add(a.pause.Next())
}

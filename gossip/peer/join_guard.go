package peer

import (
	"net/netip"
	"sync"
	"time"

	"saltclusterd/backoff"
)

// Rates of the join protocol, which is the only one open to strangers.
const (
	joinRate      = 2.0 // attempts per second and address ...
	joinBurst     = 10.0
	joinRateAll   = 20.0 // ... and altogether
	joinBurstAll  = 40.0
	wrongPause    = time.Second // after the first wrong proof; doubles with each further one
	wrongPauseMax = 5 * time.Minute
	guardForget   = time.Hour // after which a quiet address starts afresh
	guardMax      = 4096      // addresses remembered
)

// joinGuard slows joins down: a bound at the same time, a rate per address and altogether, and a pause after each wrong
// proof.
type joinGuard struct {
	now func() time.Time
	max int

	mu      sync.Mutex
	running int
	all     bucket
	addrs   map[netip.Addr]*joinAddr
	swept   time.Time // last eviction
}

type joinAddr struct {
	bucket bucket
	wrong  int
	pause  backoff.Backoff // after the next wrong proof
	until  time.Time
}

// bucket is a token bucket.
type bucket struct {
	tokens float64
	last   time.Time
}

func (b *bucket) takeToken(now time.Time, rate, burst float64) bool {
	b.tokens = min(burst, b.tokens+rate*max(0, now.Sub(b.last).Seconds()))
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func newJoinGuard(atOnce int, now func() time.Time) *joinGuard {
	return &joinGuard{now: now, max: atOnce, all: bucket{tokens: joinBurstAll, last: now()},
		addrs: map[netip.Addr]*joinAddr{}}
}

// startAttempt allows or refuses an attempt; leave must be called after true.
func (g *joinGuard) startAttempt(addr netip.Addr) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := g.findAddr(addr, now)
	if a == nil || now.Before(a.until) || g.running >= g.max ||
		!a.bucket.takeToken(now, joinRate, joinBurst) || !g.all.takeToken(now, joinRateAll, joinBurstAll) {
		return nil, false
	}
	g.running++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
	}), true
}

// findAddr finds or makes the entry of addr; nil when the table is full of addresses that must be remembered.
func (g *joinGuard) findAddr(addr netip.Addr, now time.Time) *joinAddr {
	if a := g.addrs[addr]; a != nil {
		if now.Sub(a.bucket.last) > guardForget {
			a.wrong = 0
			a.pause.Reset()
		}
		return a
	}
	if len(g.addrs) >= guardMax {
		g.evictIdle(now)
	}
	if len(g.addrs) >= guardMax {
		return nil
	}
	a := &joinAddr{
		bucket: bucket{tokens: joinBurst, last: now}, pause: backoff.Backoff{Min: wrongPause, Max: wrongPauseMax},
	}
	g.addrs[addr] = a
	return a
}

// evictIdle drops entries that hold nothing worth remembering: no pause running and a full bucket. It looks at all of
// them, so it does that at most once per second.
func (g *joinGuard) evictIdle(now time.Time) {
	if now.Sub(g.swept) < time.Second {
		return
	}
	g.swept = now
	full := time.Duration(joinBurst / joinRate * float64(time.Second))
	for addr, a := range g.addrs {
		quiet := now.Sub(a.bucket.last)
		if now.After(a.until) && quiet > full && (a.wrong == 0 || quiet > wrongPauseMax) {
			delete(g.addrs, addr)
		}
	}
}

// noteFailure notes a wrong proof from addr; it returns how many there were in a row, and how long the address has to
// wait.
func (g *joinGuard) noteFailure(addr netip.Addr) (wrong int, pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := g.findAddr(addr, now)
	if a == nil {
		return 0, 0
	}
	a.wrong++
	pause = a.pause.Next()
	a.until = now.Add(pause)
	return a.wrong, pause
}

// noteSuccess forgets wrong proofs of addr.
func (g *joinGuard) noteSuccess(addr netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.addrs[addr]; a != nil {
		a.wrong, a.until = 0, time.Time{}
		a.pause.Reset()
	}
}

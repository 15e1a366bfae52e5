package peer

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"saltclusterd/backoff"
)

// Rates of the join protocol, which is the only one open to strangers.
const (
	joinRate      = 2 // attempts per second and address ...
	joinBurst     = 10
	joinRateAll   = 20 // ... and altogether
	joinBurstAll  = 40
	wrongPause    = time.Second // after the first wrong proof; doubles with each further one
	wrongPauseMax = 5 * time.Minute
	guardForget   = time.Hour // after which a quiet address starts afresh
	guardMax      = 4096      // addresses remembered
)

// joinGuard slows joins down: a rate per address and altogether, a pause after each wrong proof, and a bound on those
// at the same time that have proved the secret. Before the proof a join only has its place among the handshakes (gate),
// and no address can take all of those: strangers do not keep out joiners that have the secret.
type joinGuard struct {
	now func() time.Time
	max int

	mu      sync.Mutex
	running int
	all     *rate.Limiter
	addrs   map[netip.Addr]*joinAddr
	swept   time.Time // last eviction
}

type joinAddr struct {
	tokens *rate.Limiter
	last   time.Time // attempt
	wrong  int
	pause  backoff.Backoff // after the next wrong proof
	until  time.Time
}

func (a *joinAddr) takeToken(now time.Time) bool {
	a.last = now
	return a.tokens.AllowN(now, 1)
}

func newJoinGuard(atOnce int, now func() time.Time) *joinGuard {
	return &joinGuard{now: now, max: atOnce, all: rate.NewLimiter(joinRateAll, joinBurstAll),
		addrs: map[netip.Addr]*joinAddr{}}
}

// startAttempt allows or refuses an attempt.
func (g *joinGuard) startAttempt(addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := g.findAddr(addr, now)
	return a != nil && !now.Before(a.until) && a.takeToken(now) && g.all.AllowN(now, 1)
}

// takePlace takes a place for a join that is proved; leave must be called after true.
func (g *joinGuard) takePlace() (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running >= g.max {
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
		if now.Sub(a.last) > guardForget {
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
		tokens: rate.NewLimiter(joinRate, joinBurst), last: now,
		pause: backoff.Backoff{Min: wrongPause, Max: wrongPauseMax},
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
	const full = joinBurst * time.Second / joinRate
	for addr, a := range g.addrs {
		quiet := now.Sub(a.last)
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

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
	joinRate      = 2 // attempts per second and address
	joinBurst     = 10
	wrongPause    = time.Second // after the first wrong proof; doubles with each further one
	wrongPauseMax = 5 * time.Minute
	guardForget   = time.Hour // after which a quiet address starts afresh
	guardMax      = 4096      // addresses remembered
	guardSample   = 16        // of these, one of which is forgotten early when there are more
)

// joinGuard slows joins down: a rate per address, a pause after each wrong proof, and a bound on those at the same time
// that have proved the secret. Before the proof a join only has its place among the handshakes (gate). Nothing here is
// shared by addresses before the proof, so strangers do not keep out joiners at other addresses that have the secret;
// it is long enough that guessing it from many addresses is hopeless (ValidateSecret).
type joinGuard struct {
	now func() time.Time
	max int

	mu      sync.Mutex
	running int
	addrs   map[netip.Addr]*joinAddr
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
	return &joinGuard{now: now, max: atOnce, addrs: map[netip.Addr]*joinAddr{}}
}

// startAttempt allows or refuses an attempt.
func (g *joinGuard) startAttempt(addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := g.findAddr(addr, now)
	return !now.Before(a.until) && a.takeToken(now)
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

// findAddr finds or makes the entry of addr.
func (g *joinGuard) findAddr(addr netip.Addr, now time.Time) *joinAddr {
	if a := g.addrs[addr]; a != nil {
		if now.Sub(a.last) > guardForget {
			a.wrong = 0
			a.pause.Reset()
		}
		return a
	}
	if len(g.addrs) >= guardMax {
		g.forgetOne()
	}
	a := &joinAddr{
		tokens: rate.NewLimiter(joinRate, joinBurst), last: now,
		pause: backoff.Backoff{Min: wrongPause, Max: wrongPauseMax},
	}
	g.addrs[addr] = a
	return a
}

// forgetOne forgets the quietest of some addresses, so that no number of them keeps out another. A pause that is
// forgotten with one costs little: so many addresses have as many guesses without it.
func (g *joinGuard) forgetOne() {
	var quietest netip.Addr
	seen := 0
	for addr, a := range g.addrs {
		if seen == 0 || a.last.Before(g.addrs[quietest].last) {
			quietest = addr
		}
		if seen++; seen == guardSample {
			break
		}
	}
	delete(g.addrs, quietest)
}

// noteFailure notes a wrong proof from addr; it returns how many there were in a row, and how long the address has to
// wait.
func (g *joinGuard) noteFailure(addr netip.Addr) (wrong int, pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := g.findAddr(addr, now)
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

package signin

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A key that the cluster does not know yet costs more than an answer: the master writes a file, the cluster agrees on
// it, every node keeps it until an operator looks. Stock masters take as many as come. Here new ones are let through at
// a rate, with room for the many that a site starts at once; who comes too early hears "pending" all the same, as it
// would a moment later, but nothing is kept. It asks again in acceptance_wait_time. Keys that wait for acceptance, or
// were rejected, are let through at the same rate: else a single one that signs in without end would keep the workers
// of the master busy.

const (
	// newcomerBurst is how many seconds' worth may come at once.
	newcomerBurst = 40
	// maxAddresses bounds how many addresses are told apart.
	maxAddresses = 4096
	// pendingReplyRate bounds the answers of either kind per second; they cost a signature each. Beyond, nothing is
	// answered. While addresses are told apart one of them may have half: a flood must not take those of all others.
	pendingReplyRate = 100
)

// Newcomers limits sign-ins with keys that the cluster does not know, and separately those that it has not accepted.
type Newcomers struct {
	Rate       float64    // per second; 0: no limit
	PerAddress float64    // per second and address (IPv6: /64); 0: no limit
	MaxPending int        // keys waiting for acceptance; 0: no limit
	Pending    func() int // how many there are; called for each newcomer
	// Waiting says whether the key of an id is one of them. nil: one address may have all of MaxPending.
	Waiting func(id string) bool
}

// turnstile lets newcomers through.
type turnstile struct {
	cfg Newcomers
	now func() time.Time

	mu              sync.Mutex
	newcomers       gate
	repeated        gate // sign-ins of keys that are known and not accepted
	newcomerReplies gate // answers to those that are held back
	repeatedReplies gate
	shares          *shares // nil: there are none
}

// gate lets sign-ins through at a rate, in all and for each address.
type gate struct {
	burst      float64       // how many seconds' worth may come at once
	perAddress float64       // 0: no limit
	all        *rate.Limiter // nil: no limit
	by         map[netip.Addr]*rate.Limiter
}

func newGate(perSecond, perAddress, burst float64) gate {
	g := gate{burst: burst, perAddress: perAddress, by: map[netip.Addr]*rate.Limiter{}}
	if perSecond > 0 {
		g.all = g.newLimiter(perSecond)
	}
	return g
}

func (g *gate) newLimiter(perSecond float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), int(perSecond*g.burst))
}

// admit lets a sign-in through (empty), or says which limit holds it back. networkOf has made from.
func (g *gate) admit(from netip.Addr, now time.Time) (limit string) {
	mine := g.limiterOf(from, now)
	switch {
	case mine != nil && mine.TokensAt(now) < 1:
		return "address"
	case g.all != nil && !g.all.AllowN(now, 1):
		return "total"
	case mine != nil:
		mine.AllowN(now, 1)
	}
	return ""
}

func newTurnstile(cfg Newcomers, now func() time.Time) *turnstile {
	one := 0.0
	if cfg.PerAddress > 0 {
		one = pendingReplyRate / 2
	}
	t := &turnstile{
		cfg: cfg, now: now,
		newcomers:       newGate(cfg.Rate, cfg.PerAddress, newcomerBurst),
		repeated:        newGate(cfg.Rate, cfg.PerAddress, newcomerBurst),
		newcomerReplies: newGate(pendingReplyRate, one, 1),
		repeatedReplies: newGate(pendingReplyRate, one, 1),
	}
	if cfg.MaxPending > 0 && cfg.Pending != nil && cfg.Waiting != nil {
		t.shares = newShares(cfg.Waiting)
	}
	return t
}

// admitNewcomer lets a newcomer through (empty), or says which limit holds it back.
func (t *turnstile) admitNewcomer(from netip.Addr, id string) (limit string) {
	pending := 0
	if t.cfg.MaxPending > 0 && t.cfg.Pending != nil {
		if pending = t.cfg.Pending(); pending >= t.cfg.MaxPending {
			return "pending_full"
		}
	}
	from = networkOf(from)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.shares != nil && t.shares.isFull(from, t.cfg.MaxPending-pending, now) {
		return "pending_address"
	}
	if limit = t.newcomers.admit(from, now); limit != "" {
		return "newcomer_" + limit
	}
	if t.shares != nil {
		t.shares.addNewcomer(from, id, t.cfg.MaxPending, now)
	}
	return ""
}

// admitRepeated lets a sign-in of a key through that the cluster knows and has not accepted (empty), or says which
// limit holds it back.
func (t *turnstile) admitRepeated(from netip.Addr) (limit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit = t.repeated.admit(networkOf(from), t.now()); limit != "" {
		return "repeated_" + limit
	}
	return ""
}

// mayAnswer says whether one that is held back may be answered. Keys that wait have answers of their own, which
// strangers with new keys cannot use up.
func (t *turnstile) mayAnswer(from netip.Addr, repeated bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	replies := &t.newcomerReplies
	if repeated {
		replies = &t.repeatedReplies
	}
	return replies.admit(networkOf(from), t.now()) == ""
}

// networkOf is the address by which newcomers from an address are counted: of IPv6 its /64.
func networkOf(from netip.Addr) netip.Addr {
	if from = from.Unmap(); from.Is6() {
		if p, err := from.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return from
}

// limiterOf returns the limiter of an address, which networkOf has made.
func (g *gate) limiterOf(from netip.Addr, now time.Time) *rate.Limiter {
	if g.perAddress <= 0 {
		return nil
	}
	b := g.by[from]
	if b == nil {
		if len(g.by) >= maxAddresses {
			g.forgetIdle(now)
		}
		b = g.newLimiter(g.perAddress)
		g.by[from] = b
	}
	return b
}

// forgetIdle drops addresses that are as good as new, or any one when there are none.
func (g *gate) forgetIdle(now time.Time) {
	for a, b := range g.by {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(g.by, a)
		}
	}
	for a := range g.by {
		if len(g.by) < maxAddresses {
			return
		}
		delete(g.by, a)
	}
}

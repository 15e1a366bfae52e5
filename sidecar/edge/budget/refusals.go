package budget

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/netconn"
)

// Requests that are refused cost next to nothing each; a flood of them does not. A connection whose requests are
// refused and refused is read more slowly, and so are all such connections of one address (of IPv6, of one /64)
// together. TCP makes their senders wait. Others are not slowed: minions behind the same load balancer have connections
// of their own. A large request counts as many, because it takes as long to find out that it is not authentic.
const (
	refusedUnit = 16 << 10 // bytes that count like one more refusal
	connRefused = 100.0    // per second, of a connection
	connBurst   = 1000.0
	addrRefused = 500.0 // per second, of all connections of one address
	addrBurst   = 5000.0
	// for which a connection is not read at a time, unless the last refusal alone is worth more
	maxSlowed    = 2 * time.Second
	maxAddresses = 4096 // remembered; more are only slowed connection by connection
)

// allowance is the refusals that a connection or an address still has: negative when it is to be slowed.
type allowance struct {
	left float64
	at   int64 // clock; 0: nothing was refused yet
}

// refusalCost is what a refused request of so many bytes counts.
func refusalCost(size int64) float64 { return 1 + float64(size/refusedUnit) }

// slowedMost is for how long a connection is not read at most for a refusal of that cost.
func slowedMost(cost, rate float64) time.Duration {
	return max(maxSlowed, time.Duration(cost/rate*float64(time.Second)))
}

// spend notes a refusal and returns for how long no more are wanted.
func (a *allowance) spend(now int64, cost, rate, burst float64) time.Duration {
	if a.at == 0 {
		a.left = burst
	} else {
		a.left = min(a.left+float64(now-a.at)/1e9*rate, burst)
	}
	a.at = now
	a.left -= cost
	if a.left >= 0 {
		return 0
	}
	most := slowedMost(cost, rate)
	a.left = max(a.left, -rate*most.Seconds()) // what is owed is forgotten some time
	return min(time.Duration(-a.left/rate*1e9), most)
}

// full tells whether nothing is left of its refusals.
func (a *allowance) full(now int64, rate, burst float64) bool {
	return a.left+float64(now-a.at)/1e9*rate >= burst
}

// Refusals counts the refused requests of addresses. The zero value is ready.
type Refusals struct {
	mu    sync.Mutex
	of    map[netip.Addr]*allowance
	swept int64
}

func (r *Refusals) spend(addr netip.Addr, now int64, cost float64) time.Duration {
	addr = netconn.Network(addr)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[addr]
	if a == nil {
		if len(r.of) >= maxAddresses && now-r.swept > int64(time.Second) {
			r.swept = now
			for addr, old := range r.of {
				if old.full(now, addrRefused, addrBurst) {
					delete(r.of, addr)
				}
			}
		}
		if len(r.of) >= maxAddresses {
			return 0
		}
		if r.of == nil {
			r.of = map[netip.Addr]*allowance{}
		}
		a = &allowance{}
		r.of[addr] = a
	}
	return a.spend(now, cost, addrRefused, addrBurst)
}

// Throttle is for how long a connection is not read. The zero value is ready.
type Throttle struct {
	mu    sync.Mutex
	own   allowance
	until atomic.Int64 // clock from which on it is read again
}

// Refused notes that a request of size bytes from addr was refused, and tells whether its connection is slowed now.
func (t *Throttle) Refused(all *Refusals, addr netip.Addr, size int64) bool {
	now, cost := netconn.Clock(), refusalCost(size)
	t.mu.Lock()
	wait := t.own.spend(now, cost, connRefused, connBurst)
	t.mu.Unlock()
	wait = max(wait, all.spend(addr, now, cost))
	if wait > 0 {
		t.until.Store(now + int64(wait))
	}
	return wait > 0
}

// Active tells whether the connection is not to be read now.
func (t *Throttle) Active() bool {
	until := t.until.Load()
	return until != 0 && netconn.Clock() < until
}

// Wait waits until the connection is to be read again; false when done or stop closes before.
func (t *Throttle) Wait(done, stop <-chan struct{}) bool {
	for t.Active() {
		timer := time.NewTimer(time.Duration(t.until.Load() - netconn.Clock()))
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return false
		case <-stop:
			timer.Stop()
			return false
		}
	}
	return true
}

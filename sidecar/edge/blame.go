package edge

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
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

// blame is what is left of the patience with a connection or an address: negative when there is none.
type blame struct {
	left float64
	at   int64 // clock; 0: nothing was refused yet
}

// refusalCost is what a refused request of so many bytes counts.
func refusalCost(size int64) float64 { return 1 + float64(size/refusedUnit) }

// slowedMost is for how long a connection is not read at most for a refusal of that cost.
func slowedMost(cost, rate float64) time.Duration {
	return max(maxSlowed, time.Duration(cost/rate*float64(time.Second)))
}

// spend notes a refusal and says for how long no more are wanted.
func (b *blame) spend(now int64, cost, rate, burst float64) time.Duration {
	if b.at == 0 {
		b.left = burst
	} else {
		b.left = min(b.left+float64(now-b.at)/1e9*rate, burst)
	}
	b.at = now
	b.left -= cost
	if b.left >= 0 {
		return 0
	}
	most := slowedMost(cost, rate)
	b.left = max(b.left, -rate*most.Seconds()) // what is owed is forgotten some time
	return min(time.Duration(-b.left/rate*1e9), most)
}

// forgotten says whether nothing is left of it.
func (b *blame) forgotten(now int64, rate, burst float64) bool {
	return b.left+float64(now-b.at)/1e9*rate >= burst
}

// network is the address by which the peers at an address are counted: of IPv6 its /64, all of which a host may have.
func network(addr netip.Addr) netip.Addr {
	if addr.Is6() && !addr.Is4In6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// blames are those of addresses.
type blames struct {
	mu    sync.Mutex
	of    map[netip.Addr]*blame
	swept int64
}

func (bs *blames) spend(addr netip.Addr, now int64, cost float64) time.Duration {
	addr = network(addr)
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.of[addr]
	if b == nil {
		if len(bs.of) >= maxAddresses && now-bs.swept > int64(time.Second) {
			bs.swept = now
			for a, old := range bs.of {
				if old.forgotten(now, addrRefused, addrBurst) {
					delete(bs.of, a)
				}
			}
		}
		if len(bs.of) >= maxAddresses {
			return 0
		}
		if bs.of == nil {
			bs.of = map[netip.Addr]*blame{}
		}
		b = &blame{}
		bs.of[addr] = b
	}
	return b.spend(now, cost, addrRefused, addrBurst)
}

// slowed is a connection's own share.
type slowed struct {
	mu    sync.Mutex
	left  blame
	until atomic.Int64 // clock from which on it is read again
}

// Refused says that the request was refused, before or after it is answered: too many of them, and less is read from
// where it came.
func (r *Request) Refused() {
	c, now, cost := r.conn, clock(), refusalCost(r.size)
	c.blame.mu.Lock()
	wait := c.blame.left.spend(now, cost, connRefused, connBurst)
	c.blame.mu.Unlock()
	wait = max(wait, c.edge.blames.spend(c.remote.Addr(), now, cost))
	if wait > 0 {
		c.blame.until.Store(now + int64(wait))
		c.edge.met.slowed.Inc()
	}
}

// owes says whether a connection is not to be read now.
func (c *reqConn) owes() bool {
	until := c.blame.until.Load()
	return until != 0 && clock() < until
}

// atone waits until a connection is to be read again; false when it ends, or stop closes, before.
func (c *reqConn) atone(stop <-chan struct{}) bool {
	for c.owes() {
		t := time.NewTimer(time.Duration(c.blame.until.Load() - clock()))
		select {
		case <-t.C:
		case <-c.done:
			t.Stop()
			return false
		case <-stop:
			t.Stop()
			return false
		}
	}
	return true
}

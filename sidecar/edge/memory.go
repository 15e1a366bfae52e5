package edge

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// smallRequest is up to where a request counts as small. A stranger needs no more for a sign-in, a minion no more for
	// most returns.
	smallRequest = 64 << 10
	// slowUnderPressure is the bytes per second below which an incomplete request gives up its memory before others, once
	// it is as old as youngLarge or youngSmall. A segment of a small one may be lost on the path, and come again seconds
	// later.
	slowUnderPressure = 128 << 10
	youngLarge        = int64(time.Second)
	youngSmall        = int64(5 * time.Second)
	// smallSignIn is up to where a request that waits unauthenticated counts as small. Sign-ins of stock minions have some
	// 3 KiB.
	smallSignIn = 16 << 10
	// trustFor is how long an address stays known after a request from it was authenticated.
	trustFor = int64(24 * time.Hour)
	// trustAgain is how often a connection renews that.
	trustAgain = int64(time.Minute)
	// maxKnown bounds the known addresses.
	maxKnown = 65536
)

// memory shares ReqConfig.MaxMemory among connections. What a request weighs is charged as it arrives. When there is no
// room, incomplete requests make it, in this order: those from addresses that no authenticated request has come from,
// slow ones, large ones, those of the owner that holds most, the largest. A large request (above smallRequest) never
// gets the last part of the memory, and a complete request gives up nothing.
type memory struct {
	limit   int64
	reserve int64 // the part of limit that is kept for small requests
	evicted func(n int)

	used    atomic.Int64 // bytes of incomplete and unanswered requests
	unknown atomic.Int64 // of those: of requests that wait before it is certain who has sent them

	mu      sync.Mutex
	holders map[*reqConn]struct{} // connections with incomplete requests, or complete ones that wait for a place
	known   map[netip.Addr]int64  // clock when a request from there was authenticated last
}

// holding is what a connection has of the memory. memory.mu guards it.
type holding struct {
	bytes int64
	gone  bool   // it was cut to make room
	owner string // the minion that has authenticated a request on it; empty: none has
}

func newMemory(limit, largest int64, evicted func(int)) *memory {
	return &memory{
		limit: limit, reserve: max(min(limit/8, limit-2*largest), 0), evicted: evicted,
		holders: map[*reqConn]struct{}{}, known: map[netip.Addr]int64{},
	}
}

// room is how much may be used for a request of size bytes to fit.
func (m *memory) room(size int64) int64 {
	if size > smallRequest {
		return m.limit - m.reserve
	}
	return m.limit
}

// errMemory ends a connection whose request has no room.
var errMemory = &cutError{ReasonMemory, "no memory left for requests"}

// hold sets what the incomplete or waiting request of a connection weighs.
func (m *memory) hold(c *reqConn, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.holding.gone {
		return errCut
	}
	grown := size - c.holding.bytes
	m.set(c, size)
	if over := m.used.Load() - m.room(size); grown > 0 && over > 0 {
		m.makeRoom(over, c)
		if c.holding.gone {
			return errMemory
		}
	}
	return nil
}

// complete turns what a connection holds into a request of size bytes, which keeps its memory until release.
func (m *memory) complete(c *reqConn, size int64, held bool) error {
	if !held && m.used.Add(size) <= m.room(size) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if held {
		if c.holding.gone {
			return errCut
		}
		grown := size - c.holding.bytes
		m.set(c, 0)
		if m.used.Add(size); grown <= 0 {
			return nil
		}
	}
	over := m.used.Load() - m.room(size)
	if over > 0 && m.makeRoom(over, nil) < over {
		m.used.Add(-size)
		return errMemory
	}
	return nil
}

// adopt charges a connection that was taken over, whatever room there is.
func (m *memory) adopt(c *reqConn, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(c, size)
}

// release gives back what a complete request has held.
func (m *memory) release(size int64) { m.used.Add(-size) }

// set charges a connection for so many bytes. Wants mu.
func (m *memory) set(c *reqConn, size int64) {
	m.used.Add(size - c.holding.bytes)
	if c.holding.bytes = size; size > 0 {
		m.holders[c] = struct{}{}
	} else {
		delete(m.holders, c)
	}
}

// makeRoom cuts connections with incomplete requests until need bytes are free, and returns how many have become free.
// It stops at asker, which is cut when it comes before those that would have to be cut next. Wants mu.
func (m *memory) makeRoom(need int64, asker *reqConn) (freed int64) {
	enough, n := need, 0
	need += m.limit / 32 // so that this is not done again for the next read
	for _, v := range m.ranked() {
		if freed >= need || v.conn == asker && freed >= enough {
			break
		}
		freed += v.bytes
		m.set(v.conn, 0)
		v.conn.holding.gone = true
		v.conn.cut(ReasonMemory)
		if n++; v.conn == asker {
			break
		}
	}
	m.evicted(n)
	return freed
}

// owner is who is charged for a connection: the minion, or as long as none has been authenticated on it, the address.
type owner struct {
	minion  string
	address netip.Addr
}

// victim is a connection with what decides when it gives up its memory.
type victim struct {
	conn  *reqConn
	bytes int64
	owner owner
	rank  int // the least goes first
}

// ranked lists the holders in the order in which they give up their memory. Wants mu.
func (m *memory) ranked() []victim {
	all := make([]victim, 0, len(m.holders))
	total := map[owner]int64{}
	now := clock()
	for c := range m.holders {
		v := victim{conn: c, bytes: c.holding.bytes, owner: owner{minion: c.holding.owner}}
		if v.owner.minion == "" {
			v.owner.address = network(c.remote.Addr())
		}
		if at, ok := m.known[network(c.remote.Addr())]; ok && now-at < trustFor {
			v.rank |= 4
		}
		if !c.slow(now, v.bytes) {
			v.rank |= 2
		}
		if v.bytes <= smallRequest {
			v.rank |= 1
		}
		total[v.owner] += v.bytes
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(total[b.owner], total[a.owner]), cmp.Compare(b.bytes, a.bytes))
	})
	return all
}

// slow tells whether the incomplete request of a connection, of which held bytes have come, comes slowly. One that is
// complete and waits for its turn does when its sender is being slowed.
func (c *reqConn) slow(now, held int64) bool {
	begun := c.midway.Load()
	if begun == 0 {
		return c.owes()
	}
	age, young := now-begun, youngLarge
	if held <= smallRequest {
		young = youngSmall
	}
	return age > young && float64(held)*1e9 < float64(age)*slowUnderPressure
}

// trust notes that a request of a connection was authenticated as that of a minion.
func (m *memory) trust(c *reqConn, minion string) {
	now := clock()
	if last := c.trusted.Load(); last != 0 && now-last < trustAgain {
		return
	}
	c.trusted.Store(now)
	address := network(c.remote.Addr())
	m.mu.Lock()
	defer m.mu.Unlock()
	c.holding.owner = minion
	if _, ok := m.known[address]; !ok && len(m.known) >= maxKnown {
		for other := range m.known {
			delete(m.known, other)
			break
		}
	}
	m.known[address] = now
}

// linger takes room for a complete request that waits before it is certain who has sent it.
func (m *memory) linger(size int64) bool {
	most := m.limit / 8
	if size > smallSignIn {
		most /= 2
	}
	if m.unknown.Add(size) > most {
		m.unknown.Add(-size)
		return false
	}
	return true
}

// Authenticated says that the request is certainly one of that minion. Its connection, and requests from its address,
// are the last that are cut when memory is short.
func (r *Request) Authenticated(minion string) {
	r.known()
	r.conn.edge.mem.trust(r.conn, minion)
}

// Linger is called before a request waits though it is not certain who has sent it. false: too much waits so already,
// and it should be given up.
func (r *Request) Linger() bool {
	if r.lingers.Load() {
		return true
	}
	if !r.conn.edge.mem.linger(r.size) {
		r.conn.edge.met.crowded.Inc()
		return false
	}
	r.lingers.Store(true)
	return true
}

// known ends that a request lingers.
func (r *Request) known() {
	if r.lingers.CompareAndSwap(true, false) {
		r.conn.edge.mem.unknown.Add(-r.size)
	}
}

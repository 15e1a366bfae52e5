package budget

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/netconn"
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

// Memory shares a number of bytes among connections. What a request weighs is charged as it arrives. When there is no
// room, incomplete requests make it, in this order: those from addresses that no authenticated request has come from,
// slow ones, large ones, those of the owner that holds most, the largest. A large request (above smallRequest) never
// gets the last part of the memory, and a complete request gives up nothing.
type Memory struct {
	limit   int64
	reserve int64 // the part of limit that is kept for small requests
	evicted func(n int)

	used    atomic.Int64 // bytes of incomplete and unanswered requests
	unknown atomic.Int64 // of those: of requests that wait before it is certain who has sent them

	mu      sync.Mutex
	holders map[*Share]struct{}  // of incomplete requests, or complete ones that wait for a place
	known   map[netip.Addr]int64 // clock when a request from there was authenticated last
}

// NewMemory returns a memory of limit bytes for requests of at most largest bytes. evicted gets the number of
// connections that were cut to make room.
func NewMemory(limit, largest int64, evicted func(int)) *Memory {
	return &Memory{
		limit: limit, reserve: max(min(limit/8, limit-2*largest), 0), evicted: evicted,
		holders: map[*Share]struct{}{}, known: map[netip.Addr]int64{},
	}
}

// Used returns the bytes of incomplete and unanswered requests.
func (m *Memory) Used() int64 { return m.used.Load() }

// Unauthenticated returns the bytes of requests that wait before it is certain who has sent them.
func (m *Memory) Unauthenticated() int64 { return m.unknown.Load() }

// room is how much may be used for a request of size bytes to fit.
func (m *Memory) room(size int64) int64 {
	if size > smallRequest {
		return m.limit - m.reserve
	}
	return m.limit
}

// errMemory ends a connection whose request has no room.
var errMemory = netconn.NewError(netconn.ReasonMemory, "no memory left for requests")

// Hold sets what the incomplete or waiting request of a connection weighs.
func (m *Memory) Hold(s *Share, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.gone {
		return netconn.ErrCut
	}
	grown := size - s.bytes
	m.set(s, size)
	if over := m.used.Load() - m.room(size); grown > 0 && over > 0 {
		m.makeRoom(over, s)
		if s.gone {
			return errMemory
		}
	}
	return nil
}

// Complete turns what a connection holds into a request of size bytes, which keeps its memory until Release.
func (m *Memory) Complete(s *Share, size int64, held bool) error {
	if !held && m.used.Add(size) <= m.room(size) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if held {
		if s.gone {
			return netconn.ErrCut
		}
		grown := size - s.bytes
		m.set(s, 0)
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

// Adopt charges a connection that was taken over, whatever room there is.
func (m *Memory) Adopt(s *Share, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(s, size)
}

// AdoptComplete charges a complete request that was taken over.
func (m *Memory) AdoptComplete(size int64) { m.used.Add(size) }

// Release gives back what a complete request has held.
func (m *Memory) Release(size int64) { m.used.Add(-size) }

// set charges a connection for so many bytes. Wants mu.
func (m *Memory) set(s *Share, size int64) {
	m.used.Add(size - s.bytes)
	if s.bytes = size; size > 0 {
		m.holders[s] = struct{}{}
	} else {
		delete(m.holders, s)
	}
}

// makeRoom cuts connections with incomplete requests until need bytes are free, and returns how many have become free.
// It stops at asker, which is cut when it comes before those that would have to be cut next. Wants mu.
func (m *Memory) makeRoom(need int64, asker *Share) (freed int64) {
	enough, n := need, 0
	need += m.limit / 32 // so that this is not done again for the next read
	for _, v := range m.ranked() {
		if freed >= need || v.share == asker && freed >= enough {
			break
		}
		freed += v.bytes
		m.set(v.share, 0)
		v.share.gone = true
		v.share.conn.Cut(netconn.ReasonMemory)
		if n++; v.share == asker {
			break
		}
	}
	m.evicted(n)
	return freed
}

// victim is a connection with what decides when it gives up its memory.
type victim struct {
	share *Share
	bytes int64
	owner owner
	rank  int // the least goes first
}

// ranked lists the holders in the order in which they give up their memory. Wants mu.
func (m *Memory) ranked() []victim {
	all := make([]victim, 0, len(m.holders))
	total := map[owner]int64{}
	now := netconn.Clock()
	for s := range m.holders {
		v := victim{share: s, bytes: s.bytes, owner: s.ownedBy()}
		if at, ok := m.known[netconn.Network(s.conn.Remote().Addr())]; ok && now-at < trustFor {
			v.rank |= 4
		}
		if !s.slow(now, v.bytes) {
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

// Trust notes that a request of a connection was authenticated as that of a minion.
func (m *Memory) Trust(s *Share, minion string) {
	now := netconn.Clock()
	if last := s.trusted.Load(); last != 0 && now-last < trustAgain {
		return
	}
	s.trusted.Store(now)
	s.minion.Store(&minion)
	address := netconn.Network(s.conn.Remote().Addr())
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[address]; !ok && len(m.known) >= maxKnown {
		for other := range m.known {
			delete(m.known, other)
			break
		}
	}
	m.known[address] = now
}

// Linger takes room for a complete request that waits before it is certain who has sent it. false: there is none.
func (m *Memory) Linger(size int64) bool {
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

// EndLinger gives back what Linger has taken.
func (m *Memory) EndLinger(size int64) { m.unknown.Add(-size) }

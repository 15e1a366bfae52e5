package budget

import (
	"net/netip"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/netconn"
)

// minRate is the bytes per second at which a request may come for as long as it likes.
const minRate = 64 << 10

// Conn is a connection that shares a Memory.
type Conn interface {
	Remote() netip.AddrPort
	Cut(netconn.Reason)
}

// Share is what one connection has of a Memory and of an Unread, with what decides when it gives that up. Init comes
// first.
type Share struct {
	Throttle Throttle
	Progress Progress

	conn    Conn
	trusted atomic.Int64           // clock when a request was authenticated, see trustAgain; 0: none was
	minion  atomic.Pointer[string] // that has authenticated a request; nil: none has

	// Guarded by Memory.mu.
	bytes int64
	gone  bool // the connection was cut to make room

	// Guarded by Unread.mu.
	unread  int64
	dropped bool // the connection was cut to make room
}

// Init ties the share to its connection.
func (s *Share) Init(c Conn) { s.conn = c }

// owner is who is charged for a connection: the minion, or as long as none has been authenticated on it, the address.
type owner struct {
	minion  string
	address netip.Addr
}

func (s *Share) ownedBy() owner {
	if minion := s.minion.Load(); minion != nil {
		return owner{minion: *minion}
	}
	return owner{address: netconn.Network(s.conn.Remote().Addr())}
}

// slow tells whether the incomplete request of a connection, of which held bytes have come, comes slowly. One that is
// complete and waits for its turn does when its sender is being slowed.
func (s *Share) slow(now, held int64) bool {
	begun := s.Progress.begun.Load()
	if begun == 0 {
		return s.Throttle.Active()
	}
	age, young := now-begun, youngLarge
	if held <= smallRequest {
		young = youngSmall
	}
	return age > young && float64(held)*1e9 < float64(age)*slowUnderPressure
}

// Progress is how an incomplete request comes. Its reader changes it; every goroutine may read it.
type Progress struct {
	begun atomic.Int64 // clock when it began, 0: there is none
	due   atomic.Int64 // clock when it is too late for more of it
}

// Midway tells whether there is an incomplete request.
func (p *Progress) Midway() bool { return p.begun.Load() != 0 }

// Late tells whether the request comes too slowly.
func (p *Progress) Late(now int64) bool { return p.Midway() && now > p.due.Load() }

// End says that the request is complete, or was none.
func (p *Progress) End() {
	if p.begun.Load() != 0 {
		p.begun.Store(0)
	}
}

// Add says that read bytes of the request have come. It may take timeout in all, and longer if it comes at minRate.
func (p *Progress) Add(read int, timeout time.Duration) {
	now := netconn.Clock()
	if p.begun.Load() == 0 {
		p.begun.Store(now)
		p.due.Store(now + int64(timeout))
		return
	}
	more := int64(read) * int64(time.Second) / minRate
	p.due.Store(min(p.due.Load()+more, now+int64(timeout)))
}

// Age returns how much of timeout is used up, for another process.
func (p *Progress) Age(now int64, timeout time.Duration) (midway bool, age time.Duration) {
	return p.Midway(), max(timeout-time.Duration(p.due.Load()-now), 0)
}

// Resume is Age backwards.
func (p *Progress) Resume(now int64, age, timeout time.Duration) {
	p.begun.Store(max(now-int64(age), 1))
	p.due.Store(now - int64(age) + int64(timeout))
}

package health

import (
	"net"
	"net/netip"
	"sync"
)

// limited is a listener that closes connections beyond a number in all and
// per address, so that one stranger cannot take the load balancer's place. When
// all places are taken, whoever has fewer gets one of those who have the most,
// where all of a /64 are one if it is IPv6: some strangers cannot, either.
type limited struct {
	net.Listener
	total, perAddress int
	refused           func(limit string)

	mu     sync.Mutex
	open   map[net.Conn]place
	counts map[netip.Addr]int
	groups map[netip.Addr]int // of IPv6 by /64
	number uint64             // of the last one
}

// place is whose a connection is, and how many came before it.
type place struct {
	addr, group netip.Addr
	number      uint64
}

func newLimited(l net.Listener, total, perAddress int, refused func(string)) *limited {
	return &limited{
		Listener: l, total: total, perAddress: perAddress, refused: refused,
		open: map[net.Conn]place{}, counts: map[netip.Addr]int{}, groups: map[netip.Addr]int{},
	}
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counted, limit := l.admitConn(c)
		if limit == "" {
			return counted, nil
		}
		l.refused(limit)
		c.Close()
	}
}

func (l *limited) admitConn(c net.Conn) (counted net.Conn, limit string) {
	addr := addressOf(c.RemoteAddr())
	group := groupOf(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts[addr] >= l.perAddress {
		return nil, "address"
	}
	if len(l.open) >= l.total {
		old := l.oldestCrowding(l.groups[group] + 1)
		if old == nil {
			return nil, "total"
		}
		l.dropConn(old)
		l.refused("total")
		old.Close() // whoever serves it finds out by that
	}
	l.number++
	l.open[c] = place{addr, group, l.number}
	l.counts[addr]++
	l.groups[group]++
	return &countedConn{Conn: c, l: l}, ""
}

// oldestCrowding returns the oldest connection of a group that has the most, if that
// is more than some. Wants mu.
func (l *limited) oldestCrowding(some int) (oldest net.Conn) {
	var found place
	for c, p := range l.open {
		n, most := l.groups[p.group], l.groups[found.group]
		if n > some && (oldest == nil || n > most || n == most && p.number < found.number) {
			oldest, found = c, p
		}
	}
	return oldest
}

// dropConn takes a connection off the books. Wants mu.
func (l *limited) dropConn(c net.Conn) {
	p, ok := l.open[c]
	if !ok {
		return
	}
	delete(l.open, c)
	decrement(l.counts, p.addr)
	decrement(l.groups, p.group)
}

func decrement(counts map[netip.Addr]int, of netip.Addr) {
	if counts[of]--; counts[of] <= 0 {
		delete(counts, of)
	}
}

func (l *limited) forgetConn(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropConn(c)
}

// close stops a listener that may be nil.
func (l *limited) close() {
	if l != nil {
		l.Close()
	}
}

type countedConn struct {
	net.Conn
	l *limited
}

// Close gives the place back.
func (c *countedConn) Close() error {
	c.l.forgetConn(c.Conn)
	return c.Conn.Close()
}

func addressOf(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// groupOf is an address, or its /64: one host has as many of these as it likes.
func groupOf(addr netip.Addr) netip.Addr {
	if p, err := addr.Prefix(64); err == nil && addr.Is6() {
		return p.Addr()
	}
	return addr
}

package health

import (
	"net"
	"net/netip"
	"sync"
)

// limited is a listener that closes connections beyond a number in all and
// per address, so that one stranger cannot take the load balancer's place.
type limited struct {
	net.Listener
	total, perAddress int
	refused           func(limit string)

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	counts map[netip.Addr]int
}

func newLimited(l net.Listener, total, perAddress int, refused func(string)) *limited {
	return &limited{
		Listener: l, total: total, perAddress: perAddress, refused: refused,
		open: map[net.Conn]struct{}{}, counts: map[netip.Addr]int{},
	}
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counted, limit := l.admit(c)
		if limit == "" {
			return counted, nil
		}
		l.refused(limit)
		c.Close()
	}
}

func (l *limited) admit(c net.Conn) (counted net.Conn, limit string) {
	addr := addressOf(c.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.open) >= l.total:
		return nil, "total"
	case l.counts[addr] >= l.perAddress:
		return nil, "address"
	}
	l.open[c] = struct{}{}
	l.counts[addr]++
	return &countedConn{Conn: c, l: l, addr: addr}, ""
}

func (l *limited) forget(c net.Conn, addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	if l.counts[addr]--; l.counts[addr] <= 0 {
		delete(l.counts, addr)
	}
}

// close stops a listener that may be nil.
func (l *limited) close() {
	if l != nil {
		l.Close()
	}
}

type countedConn struct {
	net.Conn
	l    *limited
	addr netip.Addr
}

// Close gives the place back.
func (c *countedConn) Close() error {
	c.l.forget(c.Conn, c.addr)
	return c.Conn.Close()
}

func addressOf(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

package peer

import (
	"net"
	"net/netip"
	"sync"
)

// gate bounds the handshakes that run at the same time. Addresses of members are counted apart from all the others, so
// that strangers who use up their places do not keep members out.
type gate struct {
	mu        sync.Mutex
	max       int
	perAddr   int
	perMember int
	strangers int
	busy      map[netip.Addr]int
}

func (g *gate) init(l Limits) {
	g.max, g.perAddr, g.perMember = l.Handshakes, l.HandshakesPerAddr, l.MemberHandshakes
	g.busy = map[netip.Addr]int{}
}

// takePlace takes a place for addr; false: there is none. leave must be called once after true.
func (g *gate) takePlace(addr netip.Addr, member bool) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.perAddr
	if member {
		limit = g.perMember
	}
	if g.busy[addr] >= limit || !member && g.strangers >= g.max {
		return nil, false
	}
	g.busy[addr]++
	if !member {
		g.strangers++
	}
	return sync.OnceFunc(func() { g.freePlace(addr, member) }), true
}

func (g *gate) freePlace(addr netip.Addr, member bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !member {
		g.strangers--
	}
	if g.busy[addr]--; g.busy[addr] == 0 {
		delete(g.busy, addr)
	}
}

// hostOf returns the address of the other side without its port.
func hostOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap().WithZone("")
}

// countAs maps an address to what limits count by: one IPv6 customer has a whole /64 to himself.
func countAs(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

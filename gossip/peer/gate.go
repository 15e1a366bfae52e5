package peer

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// gate bounds the handshakes that run at the same time. Addresses of members are counted apart from all the others, so
// that strangers who use up their places do not keep members out. When all places of strangers are taken, the next
// stranger gets one of the network, and in it of the address, that has the most: no number of addresses can keep others
// out by waiting.
type gate struct {
	mu        sync.Mutex
	max       int
	perAddr   int
	perMember int
	waiting   list.List // strangers (*stranger), in the order in which they came
	busy      map[netip.Addr]int
	networks  map[netip.Addr]int // strangers by networkOf
}

// stranger is the place of one.
type stranger struct {
	addr, network netip.Addr
	cut           func()
}

func (g *gate) init(l Limits) {
	g.max, g.perAddr, g.perMember = l.Handshakes, l.HandshakesPerAddr, l.MemberHandshakes
	g.busy, g.networks = map[netip.Addr]int{}, map[netip.Addr]int{}
}

// takePlace takes a place for addr; false: there is none. leave must be called after true. A stranger's place may go to
// another one: then cut is called, with the gate locked.
func (g *gate) takePlace(addr netip.Addr, member bool, cut func()) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if member {
		if g.busy[addr] >= g.perMember {
			return nil, false
		}
		g.busy[addr]++
		return sync.OnceFunc(func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			decrement(g.busy, addr)
		}), true
	}
	s := &stranger{addr, networkOf(addr), cut}
	if g.busy[addr] >= g.perAddr || g.waiting.Len() >= g.max && !g.cutFor(s) {
		return nil, false
	}
	g.busy[addr]++
	g.networks[s.network]++
	place := g.waiting.PushBack(s)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.freePlace(place)
	}, true
}

// cutFor takes the place of the oldest stranger of the address that has the most in the network that has the most, if
// that is more than who comes has.
func (g *gate) cutFor(who *stranger) bool {
	var oldest *list.Element
	var most stranger
	for e := g.waiting.Front(); e != nil; e = e.Next() {
		s := e.Value.(*stranger)
		more := g.networks[s.network] - g.networks[most.network]
		if more > 0 || more == 0 && g.busy[s.addr] > g.busy[most.addr] {
			oldest, most = e, *s
		}
	}
	if oldest == nil || g.networks[most.network] <= g.networks[who.network] && g.busy[most.addr] <= g.busy[who.addr] {
		return false
	}
	g.freePlace(oldest)
	most.cut()
	return true
}

// freePlace does nothing for a place that is free already.
func (g *gate) freePlace(place *list.Element) {
	s := place.Value.(*stranger)
	if s.cut == nil {
		return
	}
	s.cut = nil
	g.waiting.Remove(place)
	decrement(g.busy, s.addr)
	decrement(g.networks, s.network)
}

func decrement(counts map[netip.Addr]int, of netip.Addr) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
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

// networkOf maps an address to the network that a provider gives to one site: of IPv6 a /48, of IPv4 a /24.
func networkOf(a netip.Addr) netip.Addr {
	bits := 24
	if a.Is6() {
		bits = 48
	}
	if p, err := a.Prefix(bits); err == nil {
		return p.Addr()
	}
	return a
}

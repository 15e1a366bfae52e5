package netconn

import "net/netip"

// places are the connections of a listener, by the peer's address and by its network (Network), each with a limit. A
// host has as many IPv6 addresses as it likes, so a limit of one address alone does not hold it. A whole fleet may be
// in one /64, each minion with its own address, so a /64 may have more than an address: half of all connections at
// least, which is what keeps room for others.
type places struct {
	perAddr, perNetwork int // 0: no limit
	byAddr              map[netip.Addr]int
	byNetwork           map[netip.Addr]int // of IPv6
}

func newPlaces(all, perAddr int) places {
	p := places{perAddr: perAddr, byAddr: map[netip.Addr]int{}, byNetwork: map[netip.Addr]int{}}
	if perAddr > 0 {
		p.perNetwork = max(perAddr, all/2)
	}
	return p
}

// unnamed is where connections are counted whose true address is not known
// yet. It has no limit.
var unnamed netip.Addr

// isFull tells whether one more connection from an address is beyond a limit.
func (p *places) isFull(a netip.Addr) bool {
	if p.perAddr <= 0 || a == unnamed {
		return false
	}
	return p.byAddr[a] >= p.perAddr || p.byNetwork[Network(a)] >= p.perNetwork
}

func (p *places) add(a netip.Addr) {
	p.byAddr[a]++
	if a.Is6() && !a.Is4In6() {
		p.byNetwork[Network(a)]++
	}
}

func (p *places) remove(a netip.Addr) {
	decrement(p.byAddr, a)
	if a.Is6() && !a.Is4In6() {
		decrement(p.byNetwork, Network(a))
	}
}

func decrement(counts map[netip.Addr]int, of netip.Addr) {
	if counts[of]--; counts[of] <= 0 {
		delete(counts, of)
	}
}

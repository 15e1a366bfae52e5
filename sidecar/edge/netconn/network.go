package netconn

import "net/netip"

// Network is the address by which the peers at an address are counted: of IPv6 its /64, all of which a host may have.
func Network(addr netip.Addr) netip.Addr {
	if addr.Is6() && !addr.Is4In6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

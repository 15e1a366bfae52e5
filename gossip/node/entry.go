package node

import (
	"fmt"
	"net/netip"
)

// Entry is a member as the roster knows it.
type Entry struct {
	ID          ID
	Addr        netip.AddrPort // advertised peer address, the same port for tcp and udp
	Fingerprint Fingerprint
}

// ParseEntry makes an entry of the texts the consensus state has.
func ParseEntry(id, addr, fingerprint string) (Entry, error) {
	i, err := ParseID(id)
	if err != nil {
		return Entry{}, err
	}
	a, err := ParseAddr(addr)
	if err != nil {
		return Entry{}, fmt.Errorf("node %s: %w", id, err)
	}
	fp, err := ParseFingerprint(fingerprint)
	if err != nil {
		return Entry{}, fmt.Errorf("node %s: %w", id, err)
	}
	return Entry{ID: i, Addr: a, Fingerprint: fp}, nil
}

// ParseAddr reads an advertised peer address: a literal IP address and a port, as others can reach it. Wildcard,
// multicast and zoned addresses are refused, for no other host could use them.
func ParseAddr(s string) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("peer address %q: want an IP address and a port, such as 192.0.2.7:4520", s)
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	ip := ap.Addr()
	switch {
	case ap.Port() == 0:
		return netip.AddrPort{}, fmt.Errorf("peer address %q: the port is 0", s)
	case ip.IsUnspecified():
		return netip.AddrPort{}, fmt.Errorf("peer address %q: other nodes cannot connect to a wildcard address", s)
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return netip.AddrPort{}, fmt.Errorf("peer address %q: not the address of one host", s)
	case ip.Zone() != "":
		return netip.AddrPort{}, fmt.Errorf("peer address %q: a zone has no meaning on another host", s)
	}
	return ap, nil
}

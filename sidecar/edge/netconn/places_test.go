package netconn

import (
	"net/netip"
	"testing"
)

// A /64 is one host's for all that is known, and may be a whole fleet's.
func TestPlaces(t *testing.T) {
	addr := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	fleet := func(p *places, n int) (in int) {
		for i := range n {
			a := addr("2001:db8::").As16()
			a[14], a[15] = byte(i>>8), byte(i)
			if from := netip.AddrFrom16(a); !p.isFull(from) {
				p.add(from)
				in++
			}
		}
		return in
	}
	p := newPlaces(1000, 4)
	if in := fleet(&p, 2000); in != 500 {
		t.Errorf("%d connections of addresses in one /64, want half of all", in)
	}
	for _, other := range []string{"2001:db8:0:1::1", "192.0.2.1", "::ffff:192.0.2.2"} {
		for range 4 {
			if p.isFull(addr(other)) {
				t.Errorf("%s has no place beside the /64", other)
			}
			p.add(addr(other))
		}
		if !p.isFull(addr(other)) {
			t.Errorf("%s has more than four", other)
		}
		for range 4 {
			p.remove(addr(other))
		}
	}
	for i := range 1000 { // IPv4 hosts have no more than their own addresses
		p.add(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	if p.isFull(addr("10.0.9.9")) {
		t.Error("IPv4 addresses count as a network")
	}
	p.remove(addr("2001:db8::1"))
	if p.isFull(addr("2001:db8::1")) {
		t.Error("the place of one that has left is not free")
	}
	p.add(unnamed)
	if p.isFull(unnamed) {
		t.Error("connections of a load balancer, before it names the peer, have a limit")
	}

	p = newPlaces(1000, 900) // as much as all of a load balancer: then a /64 has that, too
	if in := fleet(&p, 2000); in != 900 {
		t.Errorf("%d, want what one address may have", in)
	}
	p = newPlaces(1000, 0)
	if in := fleet(&p, 2000); in != 2000 {
		t.Errorf("%d without a limit", in)
	}
}

func TestPlaces_NothingIsLeft(t *testing.T) {
	p := newPlaces(10, 2)
	for _, s := range []string{"2001:db8::1", "2001:db8::2", "192.0.2.1"} {
		p.add(netip.MustParseAddr(s))
		p.remove(netip.MustParseAddr(s))
	}
	if len(p.byAddr)+len(p.byNetwork) > 0 {
		t.Errorf("remembered: %v %v", p.byAddr, p.byNetwork)
	}
}

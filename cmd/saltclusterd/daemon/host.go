package daemon

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"

	"saltclusterd/gossip/node"
)

// localAddrs lists this host's addresses; none when the system does not tell.
func localAddrs() []netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// advertise returns the address under which the others reach this node.
func (d *Daemon) advertise() (netip.AddrPort, error) {
	text := d.cfg.PeerAdvertise(localAddrs())
	if text == "" {
		return netip.AddrPort{}, fmt.Errorf("this host has no address that others can reach: set the option cluster_advertise")
	}
	addr, err := node.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("option cluster_advertise: %w", err)
	}
	return addr, nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}

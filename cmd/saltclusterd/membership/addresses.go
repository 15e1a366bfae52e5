package membership

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
)

// LocalAddrs lists this host's addresses; none when the system does not report them.
func LocalAddrs() []netip.Addr {
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

// AdvertisedAddr returns the address under which the other members reach this node.
func AdvertisedAddr(options *config.Config) (netip.AddrPort, error) {
	text := options.PeerAdvertise(LocalAddrs())
	if text == "" {
		return netip.AddrPort{}, errors.New("this host has no address that other nodes can reach: set the option cluster_advertise")
	}
	addr, err := node.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("option cluster_advertise: %w", err)
	}
	return addr, nil
}

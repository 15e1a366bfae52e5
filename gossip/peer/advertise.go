package peer

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"saltclusterd/gossip/node"
)

func resolveAdvertise(listen, advertise string, ifaces func() ([]net.Addr, error)) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("peer listen address %q: %w", listen, err)
	}
	if advertise != "" {
		if ip, err := netip.ParseAddr(advertise); err == nil { // without a port: the one we listen on
			advertise = net.JoinHostPort(ip.String(), port)
		}
		ap, err := node.ParseAddr(advertise)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("cluster_advertise: %w", err)
		}
		return ap, nil
	}
	if host == "" {
		host = "0.0.0.0"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("peer listen address %q is not an IP address; set cluster_advertise to the address "+
			"other nodes reach this one on", listen)
	}
	if !ip.IsUnspecified() {
		return node.ParseAddr(net.JoinHostPort(ip.Unmap().String(), port))
	}
	only, err := onlyAddr(ip, ifaces)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return node.ParseAddr(net.JoinHostPort(only.String(), port))
}

// onlyAddr returns the single address of this host others may use, of the family of the wildcard (IPv6 falls back to
// IPv4, since [::] usually serves both).
func onlyAddr(wildcard netip.Addr, ifaces func() ([]net.Addr, error)) (netip.Addr, error) {
	addrs, err := ifaces()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list the addresses of this host: %w", err)
	}
	var v4, v6 []netip.Addr
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		switch ip := prefix.Addr().Unmap(); {
		case !ip.IsGlobalUnicast():
		case ip.Is4():
			v4 = append(v4, ip)
		default:
			v6 = append(v6, ip)
		}
	}
	usable := v4
	if wildcard.Is6() && len(v6) > 0 {
		usable = v6
	}
	if len(usable) == 1 {
		return usable[0], nil
	}
	texts := make([]string, len(usable))
	for i, ip := range usable {
		texts[i] = ip.String()
	}
	return netip.Addr{}, fmt.Errorf("this host has %d addresses (%s) and listens on all of them; set cluster_advertise to the "+
		"one that other nodes use", len(usable), strings.Join(texts, ", "))
}

package doctor

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// HostAddresses are the addresses of this host.
func HostAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}

// Addresses compares what the options interface and cluster_advertise name with what this host has.
func Addresses(bound []string, advertise string, have []netip.Addr) []Finding {
	const check = "addresses"
	var out []Finding
	has := func(s string) bool {
		if host, _, err := net.SplitHostPort(s); err == nil {
			s = host
		}
		a, err := netip.ParseAddr(strings.Trim(s, "[]"))
		a = a.Unmap().WithZone("")
		return err == nil && (slices.Contains(have, a) || a.Is4() && a.IsLoopback()) // all of 127.0.0.0/8 is every host's
	}
	for _, s := range bound {
		if !has(s) {
			out = append(out, Finding{Check: check, Level: Fail, Where: s,
				What: "is listed in the option interface, but this host does not have it",
				Why:  "4505 and 4506 cannot be opened there; a floating address (keepalived) belongs to a load balancer, not to a node", Next: "ip addr; then correct interface, or leave it out for all addresses"})
		}
	}
	if advertise != "" && !has(advertise) {
		out = append(out, Finding{Check: check, Level: Warn, Where: advertise,
			What: "is the value of cluster_advertise, but this host does not have it",
			Why:  "the other nodes connect to it: correct only behind NAT, if the port is forwarded to this host", Next: "ip addr; then correct cluster_advertise"})
	}
	if len(out) == 0 {
		out = append(out, ok(check, "", "this host has the addresses that the options name"))
	}
	return out
}

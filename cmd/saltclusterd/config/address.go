package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// SplitHostPort takes "host", "host:port", "2001:db8::1" or
// "[2001:db8::1]:port" apart; without a port it returns defaultPort.
func SplitHostPort(s string, defaultPort int) (host string, port int, err error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.String(), defaultPort, nil
	}
	host, port = s, defaultPort
	if strings.Contains(s, ":") {
		h, p, err := net.SplitHostPort(s)
		if err != nil || !validPort(p) {
			return "", 0, fmt.Errorf("%q is not host or host:port", s)
		}
		host = h
		port, _ = strconv.Atoi(p)
	}
	if _, err := netip.ParseAddr(host); err != nil && !validHostname(host) {
		return "", 0, fmt.Errorf("%q is not host or host:port", s)
	}
	return host, port, nil
}

func validHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
				return false
			}
		}
	}
	return true
}

// PeerAddresses returns cluster_peers as host:port.
func (c *Config) PeerAddresses() []string {
	return c.withPort(c.Cluster.Peers)
}

// PeerAddress returns one peer, host or host:port, as host:port.
func (c *Config) PeerAddress(peer string) string {
	if out := c.withPort([]string{peer}); len(out) == 1 {
		return out[0]
	}
	return peer
}

// PeerListen returns the address the peer port binds.
func (c *Config) PeerListen() string {
	return net.JoinHostPort(c.Cluster.Interface, strconv.Itoa(c.Cluster.PoolPort))
}

// EdgeAddresses returns what publish_port and ret_port bind: interface, or,
// when that is empty, the unicast addresses among local that are not loopback.
// Link-local addresses need a zone and are left out.
func (c *Config) EdgeAddresses(local []netip.Addr) (pub, req []string) {
	hosts := c.Edge.Interface
	if len(hosts) == 0 {
		for _, a := range local {
			if a = a.Unmap(); a.IsGlobalUnicast() {
				hosts = append(slices.Clip(hosts), a.String())
			}
		}
	}
	for _, h := range hosts {
		pub = append(pub, net.JoinHostPort(h, strconv.Itoa(c.Edge.PublishPort)))
		req = append(req, net.JoinHostPort(h, strconv.Itoa(c.Edge.RetPort)))
	}
	return pub, req
}

// PeerAdvertise returns the host:port that peers dial: cluster_advertise, else
// cluster_interface when it is not a wildcard, else the first edge address.
// "" means that there is none to offer.
func (c *Config) PeerAdvertise(local []netip.Addr) string {
	host := c.Cluster.Advertise
	if bound, err := netip.ParseAddr(c.Cluster.Interface); host == "" && err == nil && !bound.IsUnspecified() {
		host = bound.String()
	}
	if host == "" {
		pub, _ := c.EdgeAddresses(local)
		if len(pub) == 0 {
			return ""
		}
		host, _, _ = net.SplitHostPort(pub[0])
	}
	return c.withPort([]string{host})[0]
}

func (c *Config) withPort(hosts []string) []string {
	out := make([]string, 0, len(hosts))
	for _, h := range hosts {
		host, port, err := SplitHostPort(h, c.Cluster.PoolPort)
		if err != nil { // Validate has said so
			continue
		}
		out = append(out, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return out
}

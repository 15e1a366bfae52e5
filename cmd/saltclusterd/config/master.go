package config

import (
	"fmt"
	"net/netip"
)

// Listens is where the local salt-master listens, from its own configuration.
type Listens struct {
	Interface            netip.Addr
	PublishPort, RetPort int
}

// ValidateMaster checks that the edge addresses and those of the salt-master
// do not collide: the same port on the same address, or with a wildcard on
// either side. edge is what EdgeAddresses returned, as host:port. The error is
// Findings.
func (c *Config) ValidateMaster(m Listens, edge ...string) error {
	var out Findings
	for _, s := range edge {
		e, err := netip.ParseAddrPort(s)
		if err != nil || int(e.Port()) != m.PublishPort && int(e.Port()) != m.RetPort {
			continue
		}
		own, theirs := e.Addr().Unmap(), m.Interface.Unmap()
		switch {
		case theirs.IsUnspecified():
			out = append(out, c.newFinding("interface",
				fmt.Sprintf("%s is taken: the salt-master listens on every address (interface: %s in %s)", s, theirs,
					c.Salt.Config),
				"move it to loopback: interface: 127.0.0.1 in the salt-master's configuration, then restart it"))
		case own == theirs:
			out = append(out, c.newFinding("interface", fmt.Sprintf("%s is where the local salt-master listens", s),
				"give saltclusterd another address than the salt-master's"))
		case own.IsUnspecified():
			out = append(out, c.newFinding("interface", fmt.Sprintf("%s would also claim %s, where the local salt-master listens",
				s, theirs),
				"name this host's own addresses, or leave the option out for all of them"))
		}
	}
	return out.asError()
}

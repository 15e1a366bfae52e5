package takeover

import (
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
)

// ListAddresses lists what a daemon listens on; for a node without a cluster only what all nodes do.
func ListAddresses(options *config.Config, member bool) (all []Listening) {
	add := func(network, what string, addrs ...string) {
		for _, addr := range addrs {
			if addr != "" {
				all = append(all, Listening{Network: network, Addr: addr, Purpose: what})
			}
		}
	}
	add("unix", "admin socket", options.Paths.AdminSocket)
	add("tcp", "health_listen", options.Health.Listen)
	add("tcp", "agent_check_listen", options.Health.AgentListen)
	if !member {
		return all
	}
	add("tcp", "open peer port", options.PeerListen())
	add("udp", "bind the gossip socket", options.PeerListen())
	if !options.Cluster.Witness {
		pub, req := options.EdgeAddresses(membership.LocalAddrs())
		add("tcp", "listen for minions", append(pub, req...)...)
	}
	return all
}

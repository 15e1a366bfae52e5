package haproxy

import "time"

// Server is one node as load balancers see it.
type Server struct {
	Name    string `json:"name"`    // id of the node
	Address string `json:"address"` // without port
}

// Facts are what a configuration depends on.
type Facts struct {
	Cluster     string
	Servers     []Server
	PublishPort int
	RetPort     int
	HealthPort  int    // 0: the nodes have no health port
	HealthHost  string // of the health port, when only the node itself reaches it
	AgentPort   int    // 0: no agent-check
	Minions     int    // 0: not known
	OpenFiles   int    // that the HAProxy of this host may have at most; 0: not known
	LocalPorts  int    // of the host HAProxy is on, for one destination; 0: not known, so the default of Linux

	Heartbeat      time.Duration // of the nodes on 4505
	ForwardTimeout time.Duration // of the nodes on 4506
	ProxyProtocol  bool          // the nodes want to be told for whom a connection is
}

// side is one of Salt's two ports.
type side struct {
	name  string // of its section
	probe string // where the nodes answer for it
	port  int
}

func (f Facts) publishSide() side { return side{"salt-publish", "/pub", f.PublishPort} }
func (f Facts) requestSide() side { return side{"salt-request", "/req", f.RetPort} }

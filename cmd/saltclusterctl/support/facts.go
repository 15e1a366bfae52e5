package support

import (
	"net"
	"strconv"
	"time"

	"saltclusterd/cmd/saltclusterctl/haproxy"
	"saltclusterd/sidecar/adminapi"
)

// FactsOf takes from the options of a node what a load balancer depends on.
func FactsOf(cfg adminapi.Config) haproxy.Facts {
	o := OptionsOf(cfg)
	return haproxy.Facts{
		Cluster:     o.TextOf("cluster_id"),
		PublishPort: o.intOf("publish_port"),
		RetPort:     o.intOf("ret_port"),
		HealthPort:  portOf(o.TextOf("health_listen")),
		HealthHost:  loopbackOf(o.TextOf("health_listen")),
		AgentPort:   portOf(o.TextOf("agent_check_listen")),

		Heartbeat:      o.durationOf("heartbeat_interval"),
		ForwardTimeout: o.durationOf("forward_timeout"),
		ProxyProtocol:  o.boolOf("proxy_protocol"),
	}
}

// AddMembers adds the nodes that serve minions, and counts these.
func AddMembers(f *haproxy.Facts, members []adminapi.Member) {
	for _, m := range members {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil || m.Role == adminapi.RoleWitness {
			continue
		}
		f.Servers = append(f.Servers, haproxy.Server{Name: m.ID, Address: host})
		if m.Subscribers != nil {
			f.Minions += *m.Subscribers
		}
	}
}

// loopbackOf is the host of an address that only this host reaches; empty otherwise.
func loopbackOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return host
	}
	return ""
}

func portOf(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

// options are those of a node by name, from its files or from itself: numbers are of any type then.
type options map[string]any

func OptionsOf(cfg adminapi.Config) options {
	o := options{}
	for _, one := range cfg.Options {
		o[one.Name] = one.Value
	}
	return o
}

func (o options) TextOf(name string) string { s, _ := o[name].(string); return s }

func (o options) boolOf(name string) bool { b, _ := o[name].(bool); return b }

func (o options) intOf(name string) int {
	switch n := o[name].(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}

func (o options) durationOf(name string) time.Duration {
	d, err := time.ParseDuration(o.TextOf(name))
	if err != nil {
		return 0
	}
	return d
}

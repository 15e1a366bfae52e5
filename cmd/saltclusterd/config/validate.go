package config

import (
	"fmt"
	"net/netip"
	"strings"

	"saltclusterd/gossip/node"
)

// Validate checks every value and how they fit together. The error is
// Findings. Load has called it already.
func (c *Config) Validate() error { return c.validate().asError() }

func (c *Config) validate() Findings {
	var out Findings
	say := func(option, msg, hint string) {
		if msg != "" && !c.places[option].broken {
			out = append(out, c.newFinding(option, msg, hint))
		}
	}
	for _, o := range Options() {
		if o.check == nil {
			continue
		}
		msg, hint := o.check(o.currentValue(c))
		say(o.Name, msg, hint)
	}
	c.validateNames(say)
	c.validateSecret(say)
	c.validateAddresses(say)
	c.validateProxies(say)
	c.validateTransports(say)
	return out
}

func (c *Config) validateNames(say func(option, msg, hint string)) {
	if _, err := node.ParseID(c.ID); err != nil {
		hint := ""
		if lower := strings.ToLower(c.ID); node.ID(lower).Valid() {
			hint = "write id: " + lower
		}
		if c.places["id"].file == "" {
			hint = "it comes from the host's name; set id"
		}
		say("id", err.Error(), hint)
	}
	switch {
	case c.Cluster.ID == "":
		say("cluster_id", "is not set", "choose a name for the cluster, the same on every node")
	case len(c.Cluster.ID) > maxClusterID || strings.ContainsFunc(c.Cluster.ID, notInClusterID):
		say("cluster_id", fmt.Sprintf("%q must be at most %d letters, digits, '.', '_' and '-'", c.Cluster.ID, maxClusterID),
			"")
	}
}

const maxClusterID = 64

func notInClusterID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

func (c *Config) validateSecret(say func(option, msg, hint string)) {
	option := "cluster_secret"
	if _, set := c.places["cluster_secret_file"]; set || c.Cluster.SecretFile != "" {
		option = "cluster_secret_file"
	}
	if option == "cluster_secret_file" && !c.Cluster.Secret.IsSet() {
		return // resolveSecret has said why
	}
	if option == "cluster_secret" && !c.Cluster.Secret.IsSet() && c.places[option].file == "" &&
		c.Cluster.JoinTokenFile != "" {
		return // no node joins through this one with a secret before the cluster has agreed on one
	}
	msg, hint := checkSecret(c.Cluster.Secret.Reveal())
	if _, set := c.places["cluster_secret"]; !set && !c.Cluster.Secret.IsSet() {
		msg = "is not set: any host could join"
		hint = "set it, or cluster_secret_file, or the systemd credential cluster_secret; " + hint
	}
	say(option, msg, hint)
}

func (c *Config) validateAddresses(say func(option, msg, hint string)) {
	seen := map[netip.Addr]bool{}
	for _, s := range c.Edge.Interface {
		a, err := netip.ParseAddr(s)
		switch {
		case err != nil:
			say("interface", fmt.Sprintf("%q is not an IP address", s), "")
		case a.IsUnspecified():
			say("interface", s+" would also claim the loopback address, where the local salt-master listens",
				"name this host's own addresses, or leave the option out for all of them")
		case seen[a]:
			say("interface", s+" is given twice", "")
		}
		seen[a] = true
	}
	ports := map[int]string{c.Edge.PublishPort: "publish_port"}
	for _, p := range []struct {
		option string
		port   int
	}{{"ret_port", c.Edge.RetPort}, {"cluster_pool_port", c.Cluster.PoolPort}} {
		if other, taken := ports[p.port]; taken {
			say(p.option, fmt.Sprintf("%d is already the port of %s", p.port, other),
				"give each of them a port of its own")
		}
		ports[p.port] = p.option
	}
}

func (c *Config) validateProxies(say func(option, msg, hint string)) {
	if c.Edge.ProxyProtocol && len(c.Edge.ProxyProtocolTrusted) == 0 {
		say("proxy_protocol", "is on, but no load balancer is trusted with it",
			"name the load balancers' addresses in proxy_protocol_trusted")
	}
	for _, p := range c.Edge.ProxyProtocolTrusted {
		if p.Bits() == 0 {
			say("proxy_protocol_trusted", p.String()+" is every address: any minion could choose its address",
				"name the load balancers' own addresses")
		}
	}
}

// validateTransports refuses a pair of options that no minion could connect with: TLS has no zeromq in it.
func (c *Config) validateTransports(say func(option, msg, hint string)) {
	if c.Edge.RequireTLS && len(c.Edge.Transports) == 1 && c.Edge.Transports[0] == "zeromq" {
		say("cluster_require_tls", "is True, but cluster_transports has only zeromq, which cannot use TLS: no minion could connect",
			"add tcp to cluster_transports, or cluster_require_tls: False")
	}
}

// Proxies are the networks whose connections begin with a PROXY header.
func (e Edge) Proxies() []netip.Prefix {
	if !e.ProxyProtocol {
		return nil
	}
	return e.ProxyProtocolTrusted
}

// newFinding places a message where the option was set.
func (c *Config) newFinding(option, msg, hint string) Finding {
	p := c.places[option]
	if p.file == "" && len(c.files) > 0 {
		p.file = c.files[0]
	}
	return Finding{File: p.file, Line: p.line, Option: option, Message: msg, Hint: hint}
}

package haproxy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Level grades a Finding.
type Level string

// Levels from harmless to serious.
const (
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one thing that is wrong with a configuration.
type Finding struct {
	Level Level
	Line  int    // 0: something is missing
	What  string // a sentence
	Why   string // what minions and operators see of it
	Next  string // what to write
}

// route is the way of one side through the configuration. front and back are the same for a listen section.
type route struct {
	side
	front, back *Proxy
}

// Judge says what is wrong with a configuration for a cluster, in the order of the file.
func Judge(c *Config, f Facts) []Finding {
	j := &judge{cfg: c, facts: f}
	for _, of := range []side{f.publishSide(), f.requestSide()} {
		routes := c.findRoutes(of)
		if len(routes) == 0 {
			j.addFinding(Fail, 0, fmt.Sprintf("no section forwards port %d", of.port),
				"minions need both ports at their master's address: Minion did not return, or Salt request timed out",
				"use the sections that saltclusterctl haproxy --fragment prints")
		}
		for _, r := range routes {
			j.judgeRoute(r)
		}
	}
	j.judgeMaxConn()
	j.found = append(j.found, Files(c, f.OpenFiles)...)
	slices.SortStableFunc(j.found, func(a, b Finding) int { return a.Line - b.Line })
	return slices.CompactFunc(j.found, func(a, b Finding) bool { return a == b })
}

// findRoutes finds who carries a side: by the port that is bound, else by the port of the servers.
func (c *Config) findRoutes(of side) []route {
	var out []route
	for i := range c.Proxies {
		p := &c.Proxies[i]
		if !slices.ContainsFunc(p.Binds, func(b Bind) bool { return b.Port == of.port }) {
			continue
		}
		if p.Kind == "listen" || len(p.Servers) > 0 {
			out = append(out, route{of, p, p})
		}
		for k := range c.Proxies {
			if b := &c.Proxies[k]; b.Kind == "backend" && slices.Contains(p.Backends, b.Name) {
				out = append(out, route{of, p, b})
			}
		}
	}
	return out
}

type judge struct {
	cfg   *Config
	facts Facts
	found []Finding
}

func (j *judge) addFinding(l Level, line int, what, why, next string) {
	j.found = append(j.found, Finding{Level: l, Line: line, What: what, Why: why, Next: next})
}

func (j *judge) judgeRoute(r route) {
	for _, p := range []*Proxy{r.front, r.back} {
		if p.Mode == "http" {
			j.addFinding(Fail, p.Line, p.Kind+" "+p.Name+" is in mode http",
				"Salt speaks ZeroMQ, which HAProxy answers with 400 Bad request: no minion connects", "mode tcp")
		}
		for _, b := range p.Binds {
			if b.TLS {
				j.addFinding(Fail, b.Line, "the bind line terminates TLS", "minions do not speak TLS over zeromq: no minion connects",
					"remove ssl from the bind line")
			}
		}
		if r.front == r.back {
			break
		}
	}
	j.judgeTimeouts(r)
	j.judgeProbe(r)
	j.judgeServers(r)
	j.judgePorts(r)
	if r.back.Balance == "source" || r.back.StickTable {
		j.addFinding(Warn, r.back.Line, r.back.Kind+" "+r.back.Name+" keeps each address on one node",
			"minions behind one NAT all go to the same node, and Salt does not need this", "balance leastconn, without stick-table")
	}
}

// idleTime is how long a silent connection lives: the tunnel timeout when there is one, else the shorter of the two
// sides.
func (r route) idleTime() (time.Duration, int, bool) {
	for _, p := range []*Proxy{r.back, r.front} {
		if t, ok := p.Timeouts["tunnel"]; ok {
			return t.Time, t.Line, true
		}
	}
	client, okc := r.front.Timeouts["client"]
	server, oks := r.back.Timeouts["server"]
	switch {
	case okc && (!oks || client.Time < server.Time):
		return client.Time, client.Line, true
	case oks:
		return server.Time, server.Line, true
	}
	return 0, 0, false
}

func (j *judge) judgeTimeouts(r route) {
	for _, t := range []struct {
		name, usual string
		p           *Proxy
	}{{"client", "1m", r.front}, {"server", "1m", r.back}, {"connect", "5s", r.back}} {
		if _, ok := t.p.Timeouts[t.name]; !ok {
			j.addFinding(Warn, t.p.Line, fmt.Sprintf("%s %s has no timeout %s", t.p.Kind, t.p.Name, t.name),
				"connections of hosts that are gone stay open forever and use up maxconn", "timeout "+t.name+" "+t.usual)
		}
	}
	if t, ok := r.back.Timeouts["connect"]; ok && t.Time > 10*time.Second {
		j.addFinding(Warn, t.Line, "timeout connect is "+formatTime(t.Time),
			"a minion waits that long for a dead node before it is sent to another: Salt request timed out", "timeout connect 5s")
	}
	idle, line, ok := r.idleTime()
	if !ok {
		return
	}
	if r.name == j.facts.publishSide().name {
		j.publishIdle(idle, line)
		return
	}
	if limit := j.facts.ForwardTimeout; idle < limit {
		j.addFinding(Warn, line, fmt.Sprintf("connections to %d are cut after %s of silence", r.port, formatTime(idle)),
			fmt.Sprintf("a request may take %s at the master, for example when a pillar renders slowly: the minion logs Salt request timed out", formatTime(limit)),
			"timeout tunnel "+formatTime(requestTunnel)+" in that section")
	}
}

// publishIdle compares with the heartbeat: a fifth more than its interval may pass between two PINGs.
func (j *judge) publishIdle(idle time.Duration, line int) {
	beat := j.facts.Heartbeat
	what := fmt.Sprintf("connections to %d are cut after %s of silence, but the nodes send a PING every %s",
		j.facts.PublishPort, formatTime(idle), formatTime(beat))
	switch {
	case idle <= beat+beat/5:
		j.addFinding(Fail, line, what, "minions lose their publications again and again without noticing: Minion did not return",
			"timeout tunnel "+formatTime(publishTunnel)+" in that section, or a smaller heartbeat_interval on every node")
	case idle < 2*beat+beat/2:
		j.addFinding(Warn, line, what, "a single late PING disconnects the minion: Minion did not return",
			"timeout tunnel "+formatTime(publishTunnel)+" in that section")
	}
}

func (j *judge) judgeProbe(r route) {
	if j.facts.HealthPort == 0 || len(r.back.Servers) == 0 {
		return
	}
	if !r.back.Checked {
		j.addFinding(Warn, r.back.Line, fmt.Sprintf("%s %s only checks whether port %d is open", r.back.Kind, r.back.Name, r.port),
			"a node that is not ready or is being drained still gets minions", "option httpchk GET "+r.probe)
		return
	}
	path, _, _ := strings.Cut(r.back.HTTPCheck, "?")
	other := map[string]string{"/pub": "/req", "/req": "/pub"}[r.probe]
	switch path {
	case r.probe:
		if !r.back.On404 {
			j.addFinding(Warn, r.back.Line, fmt.Sprintf("%s %s lacks http-check disable-on-404", r.back.Kind, r.back.Name),
				"saltclusterctl drain then ends all connections of the node at once instead of one after the other", "http-check disable-on-404")
		}
	case "/readyz":
		j.addFinding(Warn, r.back.Line, fmt.Sprintf("%s %s checks /readyz", r.back.Kind, r.back.Name),
			"without a majority no node is ready, though all of them still serve minions: HAProxy would disconnect all minions", "option httpchk GET "+r.probe)
	case other:
		j.addFinding(Fail, r.back.Line, fmt.Sprintf("%s %s checks %s, which is for the other port", r.back.Kind, r.back.Name, other),
			"the node gets minions that it cannot serve, or none although it could serve them", "option httpchk GET "+r.probe)
	case "/livez":
		j.addFinding(Fail, r.back.Line, fmt.Sprintf("%s %s checks /livez", r.back.Kind, r.back.Name),
			"a live process may still be catching up: minions are sent to closed ports", "option httpchk GET "+r.probe)
	default:
		j.addFinding(Fail, r.back.Line, fmt.Sprintf("%s %s checks %s, which no node serves", r.back.Kind, r.back.Name, path),
			"the answer is 404: HAProxy considers every node drained or down", "option httpchk GET "+r.probe)
	}
}

func (j *judge) judgeServers(r route) {
	seen := map[string]bool{}
	for _, s := range r.back.Servers {
		j.judgeServer(r, s)
		seen[s.Name], seen[s.Host] = true, true
		known := slices.ContainsFunc(j.facts.Servers, func(n Server) bool { return n.Name == s.Name || n.Address == s.Host })
		if !known && len(j.facts.Servers) > 0 {
			j.addFinding(Warn, s.Line, fmt.Sprintf("server %s (%s) is not a member of the cluster", s.Name, s.Host),
				"minions sent there find a different master.pub: The master key has changed, or Invalid master key", "remove the line, or let the node join")
		}
	}
	for _, n := range j.facts.Servers {
		if !seen[n.Name] && !seen[n.Address] && len(r.back.Servers) > 0 {
			j.addFinding(Warn, r.back.Line, fmt.Sprintf("%s %s lacks the member %s (%s)", r.back.Kind, r.back.Name, n.Name, n.Address),
				"that node gets no minions, and the others carry its share", fmt.Sprintf("server %s %s:%d …, as saltclusterctl haproxy prints it", n.Name, n.Address, r.port))
		}
	}
}

func (j *judge) judgeServer(r route, s ServerLine) {
	f := j.facts
	if s.Port != 0 && s.Port != r.port {
		j.addFinding(Fail, s.Line, fmt.Sprintf("server %s receives the connections of port %d on its port %d", s.Name, r.port, s.Port),
			"the service there is not the one that the minion needs: Minion did not return, Salt request timed out", fmt.Sprintf("%s:%d", s.Host, r.port))
	}
	switch {
	case !s.Check:
		j.addFinding(Fail, s.Line, "server "+s.Name+" is not checked",
			"minions are sent to it when it is down: Minion did not return, Salt request timed out", fmt.Sprintf("add: check port %d inter 1s fall 2 rise 2", f.HealthPort))
	case r.back.Checked && f.HealthPort != 0 && s.CheckPort != f.HealthPort:
		j.addFinding(Fail, s.Line, fmt.Sprintf("server %s is checked over HTTP on its port %d, not on health_listen", s.Name,
			cmp.Or(s.CheckPort, s.Port)),
			"4505 and 4506 do not speak HTTP: HAProxy always considers the node down", fmt.Sprintf("add: port %d", f.HealthPort))
	}
	if s.Check && !s.Shutdown && r.name == f.publishSide().name {
		j.addFinding(Warn, s.Line, "server "+s.Name+" lacks on-marked-down shutdown-sessions",
			"minions of a node that has died stay with it until TCP gives up, minutes later: Minion did not return", "add: on-marked-down shutdown-sessions")
	}
	if s.Agent && s.Weight < 20 {
		j.addFinding(Warn, s.Line, fmt.Sprintf("server %s has an agent-check, and weight %d", s.Name, cmp.Or(s.Weight, 1)),
			"after a recovery the agent asks for 10% of the weight, which rounds to 0", "add: weight 100")
	}
	if s.TLS {
		j.addFinding(Fail, s.Line, "server "+s.Name+" is configured with TLS", "4505 and 4506 do not speak TLS: no minion connects",
			"remove ssl")
	}
	switch {
	case s.Proxy && !f.ProxyProtocol:
		j.addFinding(Fail, s.Line, "server "+s.Name+" has send-proxy, but the nodes do not expect it",
			"the node closes every connection: no minion connects", "remove it, or set proxy_protocol: True and proxy_protocol_trusted on every node")
	case !s.Proxy && f.ProxyProtocol:
		j.addFinding(Fail, s.Line, "server "+s.Name+" has no send-proxy, but the nodes require it (proxy_protocol: True)",
			"the node closes every connection: no minion connects", "add: send-proxy-v2")
	}
}

// linuxPorts are the local ports that Linux has for connections to one address and port, unless it is told otherwise.
const linuxPorts = 60999 - 32768 + 1

// judgePorts compares the connections to a server, each of which needs a local port, with the local ports there are. It
// also does so for the case that one server is away.
func (j *judge) judgePorts(r route) {
	n := len(r.back.Servers)
	if n == 0 || r.back.Source || slices.ContainsFunc(r.back.Servers, func(s ServerLine) bool { return s.Source }) {
		return
	}
	ports := cmp.Or(j.facts.LocalPorts, linuxPorts)
	all, less := (j.facts.Minions+n-1)/n, j.facts.Minions
	if n > 1 {
		less = (j.facts.Minions + n - 2) / (n - 1)
	}
	level, when, each := Warn, fmt.Sprintf("with one of %d servers away", n), less
	if all > ports {
		level, when, each = Fail, fmt.Sprintf("with %d servers", n), all
	}
	if each <= ports {
		return
	}
	j.addFinding(level, r.back.Line,
		fmt.Sprintf("%s %s has %d minions: %s that is %d connections to each, and there are %d local ports for one address",
			r.back.Kind,
			r.back.Name, j.facts.Minions, when, each, ports),
		"the kernel of HAProxy's host refuses further connections: Minion did not return, Salt request timed out",
		"there: sysctl -w net.ipv4.ip_local_port_range='10240 65535', and the same line in /etc/sysctl.d; or more nodes")
}

// judgeMaxConn compares maxconn with the number of minions.
func (j *judge) judgeMaxConn() {
	if j.facts.Minions == 0 {
		return
	}
	need := 2 * j.facts.Minions // a connection to each port
	if j.cfg.MaxConn > 0 && j.cfg.MaxConn < need {
		j.addFinding(Fail, 0, fmt.Sprintf("maxconn of global is %d, and %d minions need %d", j.cfg.MaxConn, j.facts.Minions, need),
			"connections beyond that wait in the kernel's queue: Minion did not return, Salt request timed out", fmt.Sprintf("maxconn %d", 2*need+1000))
	}
	for _, p := range j.cfg.Proxies {
		carries := slices.ContainsFunc(p.Binds, func(b Bind) bool {
			return b.Port == j.facts.PublishPort || b.Port == j.facts.RetPort
		})
		if carries && p.MaxConn > 0 && p.MaxConn < j.facts.Minions {
			j.addFinding(Fail, p.Line, fmt.Sprintf("maxconn of %s %s is %d, and there are %d minions", p.Kind, p.Name, p.MaxConn,
				j.facts.Minions),
				"further minions wait until others disconnect: Minion did not return", fmt.Sprintf("maxconn %d", 2*j.facts.Minions+500))
		}
	}
}

package haproxy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Options are what an operator may choose. The zero value is good.
type Options struct {
	Bind         []string      // addresses; empty: all of IPv4
	PublishProxy string        // "send-proxy" or "send-proxy-v2" on the servers of 4505; empty: what Facts say
	RequestProxy string        // the same of 4506
	Idle         time.Duration // after which silent connections are cut; 0: a day on 4505, an hour on 4506
	StatsSocket  string        // path; empty: none
	User         string        // account, and group, as which HAProxy works; empty: the one that starts it
	Fragment     bool          // without global and defaults, to be added to a file there is
	MaxConn      int           // of all and of each port; 0: by the number of minions
	API          int           // port of salt-api, which HAProxy carries as well; 0: it does not
	NoPublish    bool
	NoRequest    bool
}

// Bounds of what is written.
const (
	defaultMinions = 5000
	publishTunnel  = 24 * time.Hour
	requestTunnel  = time.Hour
)

var file = template.Must(template.New("haproxy.cfg").Parse(`{{if not .Fragment -}}
# HAProxy in front of the Salt masters of the cluster {{.Cluster}}; made by saltclusterctl haproxy.
# Check it with: haproxy -c -f FILE. If it was changed: saltclusterctl doctor --haproxy FILE

global
    # Needs {{.Files}} open files: started by root it raises the limit itself, otherwise LimitNOFILE of its unit must allow them.
    maxconn {{.Limit}}
{{- if .User}}
    user {{.User}}
    group {{.User}}
{{- end}}
{{- if .StatsSocket}}
    stats socket {{.StatsSocket}} mode 600 level admin
{{- end}}

defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
{{end}}
{{- range .Sections}}
# {{.About}}
listen {{.Name}}
{{- range .Binds}}
    bind {{.}}
{{- end}}
    mode tcp
    maxconn {{.MaxConn}}
    balance {{.Balance}}
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout tunnel {{.Tunnel}}
    timeout client-fin 10s
    timeout server-fin 10s
    option clitcpka
    option srvtcpka
    # Try the next node rather than one that has just died, which would cost a minion seconds.
    retries 2
    option redispatch 1
{{- if $.HealthPort}}
    # The node reports whether it takes minions. 404 means drained: no new connections, and the node moves the existing ones.
    timeout check 3s
    option httpchk GET {{.Probe}}
    http-check disable-on-404
{{- end}}
{{- range .Servers}}
    server {{.Name}} {{.Address}}{{.Check}}{{.Proxy}}
{{- end}}
{{end -}}
{{- with .APISection}}
# {{.About}}
# A client stays on one node, because a session of rest_cherrypy is known only to the salt-api that created it.
listen {{.Name}}
{{- range .Binds}}
    bind {{.}}
{{- end}}
    mode tcp
    balance {{.Balance}}
    hash-type consistent wt6 avalanche
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout tunnel {{.Tunnel}}
    option clitcpka
    option srvtcpka
    # Where no salt-api listens, the next node is tried.
    retries 2
    option redispatch 1
{{- if $.HealthPort}}
    # The node reports whether it and its salt-master serve. 404 means drained: no new connections, existing ones may finish.
    timeout check 3s
    option httpchk GET {{.Probe}}
    http-check disable-on-404
{{- end}}
{{- range .Servers}}
    server {{.Name}} {{.Address}}{{.Check}}
{{- end}}
{{end -}}
`))

type page struct {
	Options
	Facts
	Limit    int
	Files    int
	Sections []section
	// APISection is of salt-api; nil: none.
	APISection *section
}

type section struct {
	Name, About, Balance, Tunnel, Probe string
	Binds                               []string
	MaxConn                             int
	Servers                             []serverLine
}

type serverLine struct{ Name, Address, Check, Proxy string }

// Write makes a configuration for the cluster.
func Write(f Facts, o Options) (string, error) {
	if f.Minions == 0 {
		f.Minions = defaultMinions
	}
	p := page{Options: o, Facts: f, Limit: 4*f.Minions + 1000} // two ports; both may be reconnecting
	if o.MaxConn > 0 {
		p.Limit = o.MaxConn
	}
	p.Files = openFilesFor(p.Limit)
	if !o.NoPublish {
		s := f.newSection(o, f.publishSide(), f.proxyOption(o.PublishProxy))
		s.About, s.Balance = "Publications: one connection for each minion, for as long as it lives.", "leastconn"
		if f.Heartbeat > 0 {
			s.About += " The nodes send a PING every " + formatTime(f.Heartbeat) + "."
		}
		s.Tunnel = o.tunnelTime(publishTunnel)
		p.Sections = append(p.Sections, s)
	}
	if !o.NoRequest {
		s := f.newSection(o, f.requestSide(), f.proxyOption(o.RequestProxy))
		s.About, s.Balance = "Requests and returns: any of them may go to any node. A minion that was disconnected opens a new connection for its next request.", "roundrobin"
		s.Tunnel = o.tunnelTime(requestTunnel)
		p.Sections = append(p.Sections, s)
	}
	if o.API != 0 {
		p.APISection = f.newAPISection(o)
	}
	var b strings.Builder
	if err := file.Execute(&b, p); err != nil {
		return "", fmt.Errorf("write an HAProxy configuration: %w", err)
	}
	return strings.TrimLeft(b.String(), "\n"), nil
}

func (f Facts) proxyOption(asked string) string {
	if asked == "" && f.ProxyProtocol {
		return "send-proxy-v2"
	}
	return asked
}

func (o Options) tunnelTime(usual time.Duration) string {
	if o.Idle > 0 {
		usual = o.Idle
	}
	return formatTime(usual)
}

func (f Facts) newSection(o Options, of side, proxy string) section {
	s := section{Name: of.name, Probe: of.probe, MaxConn: 2*f.Minions + 500}
	if o.MaxConn > 0 {
		s.MaxConn = o.MaxConn
	}
	port := strconv.Itoa(of.port)
	s.Binds = o.binds(port)
	for _, n := range f.Servers {
		line := serverLine{Name: n.Name, Address: net.JoinHostPort(n.Address, port), Check: f.checkOptions()}
		if proxy != "" {
			line.Proxy = " " + proxy
		}
		s.Servers = append(s.Servers, line)
	}
	return s
}

// binds are the addresses that HAProxy listens on for a port.
func (o Options) binds(port string) (out []string) {
	for _, a := range o.Bind {
		out = append(out, net.JoinHostPort(a, port))
	}
	if len(out) == 0 {
		out = []string{":" + port}
	}
	return out
}

// newAPISection is for salt-api, which answers for the salt-master of its own host only. A client's address decides
// about its node: no table, so two HAProxies agree, and a drained node is left, which a table would keep. TLS passes
// through.
func (f Facts) newAPISection(o Options) *section {
	port := strconv.Itoa(o.API)
	s := &section{
		Name: "salt-api", About: "salt-api, with or without TLS. Event streams may be silent for long.",
		Balance: "source", Probe: "/api", Tunnel: formatTime(requestTunnel), Binds: o.binds(port),
	}
	for _, n := range f.Servers {
		s.Servers = append(s.Servers, serverLine{Name: n.Name, Address: net.JoinHostPort(n.Address, port),
			Check: f.watchOptions()})
	}
	return s
}

// checkOptions is how a server is watched. Weight 100 lets the agent ask for a part of it; slowstart does the same
// without one.
func (f Facts) checkOptions() string {
	text := " weight 100" + f.watchOptions()
	if f.AgentPort != 0 {
		return text + fmt.Sprintf(" agent-check agent-port %d agent-inter 1s", f.AgentPort)
	}
	return text + " slowstart 30s"
}

// watchOptions say where and how often HAProxy asks whether a server is well.
func (f Facts) watchOptions() string {
	port := ""
	if f.HealthPort != 0 {
		port = fmt.Sprintf(" port %d", f.HealthPort)
	}
	return " check" + port + " inter 1s fall 2 rise 2 on-marked-down shutdown-sessions"
}

// formatTime is a time as HAProxy reads it.
func formatTime(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d%time.Second == 0:
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/template"
	"time"
)

// HAProxy balances TCP connections to 4505 and 4506 over the nodes, configured as docs/operate.md tells its users to.
type HAProxy struct {
	*Process
	ConfigPath string
	Socket     string // its admin socket
}

// LBOptions vary the configuration; the zero value is the usual one.
type LBOptions struct {
	SendProxy string        // "send-proxy" or "send-proxy-v2": tell the nodes the minions' addresses on 4505
	SendReq   string        // the same on 4506
	Idle      time.Duration // cut connections that are silent for so long; 0: publications a day, requests ten minutes
}

var haproxyConfig = template.Must(template.New("haproxy.cfg").Parse(`global
    maxconn 9000
    stats socket {{.Socket}} mode 600 level admin

defaults
    mode tcp
    balance roundrobin
    timeout connect 5s
    timeout check 3s
    option clitcpka
    option srvtcpka
    # A node that has just died is not tried again, which would cost a minion seconds, but the next one.
    retries 2
    option redispatch 1
{{- if .Idle}}
    timeout tunnel {{.Idle}}
{{- end}}

{{if .Publish -}}
# Publications: one connection per minion that may be silent for days.
listen salt-publish
    bind {{.Addr}}:4505
    timeout client {{or .Idle "24h"}}
    timeout server {{or .Idle "24h"}}
    option httpchk GET /pub
    http-check disable-on-404
{{- range .Nodes}}
    server {{.Name}} {{.Addr}}:4505 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions {{$.SendProxy}}
{{- end}}
{{end}}
{{if .Request -}}
# Requests: any request may go to any node.
listen salt-request
    bind {{.Addr}}:4506
    timeout client {{or .Idle "10m"}}
    timeout server {{or .Idle "10m"}}
    option httpchk GET /req
    http-check disable-on-404
{{- range .Nodes}}
    server {{.Name}} {{.Addr}}:4506 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions {{$.SendReq}}
{{- end}}
{{end}}`))

// NewHAProxy lays out a real HAProxy on the host in front of the nodes.
func (h *Host) NewHAProxy(o LBOptions, nodes ...*Host) (*HAProxy, error) {
	return h.newHAProxy(o, "haproxy", true, true, nodes)
}

// NewHAProxies lays out one for each port, for where the limit of open files is too small for all connections of one.
func (h *Host) NewHAProxies(o LBOptions, nodes ...*Host) (publish, request *HAProxy, err error) {
	if publish, err = h.newHAProxy(o, "haproxy-publish", true, false, nodes); err != nil {
		return nil, nil, err
	}
	request, err = h.newHAProxy(o, "haproxy", false, true, nodes)
	return publish, request, err
}

func (h *Host) newHAProxy(o LBOptions, name string, publish, request bool, nodes []*Host) (*HAProxy, error) {
	path, err := exec.LookPath("haproxy")
	if err != nil {
		path = "/usr/sbin/haproxy"
		if _, err := os.Stat(path); err != nil {
			return nil, errors.New("haproxy is not installed: run 'make setup' as root, or install the package haproxy")
		}
	}
	p := &HAProxy{ConfigPath: filepath.Join(h.dir, name+".cfg"), Socket: filepath.Join(h.dir, name+".sock")}
	idle := ""
	if o.Idle > 0 {
		idle = fmt.Sprintf("%dms", o.Idle.Milliseconds())
	}
	var b bytes.Buffer
	err = haproxyConfig.Execute(&b, map[string]any{
		"Socket": p.Socket, "Addr": h.Addr, "Nodes": nodes, "SendProxy": o.SendProxy, "SendReq": o.SendReq, "Idle": idle,
		"Publish": publish, "Request": request,
	})
	if err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	if err := os.WriteFile(p.ConfigPath, b.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	port := ":4506"
	if !request {
		port = ":4505"
	}
	p.Process = h.NewProcess(Spec{
		Name: name, Argv: []string{path, "-db", "-f", p.ConfigPath}, Grace: 5 * time.Second,
		Ready: func(ctx context.Context) error { return h.Accepts(ctx, h.Addr+port) },
	})
	return p, nil
}

// ServerState is what HAProxy thinks of one server.
type ServerState struct {
	Status  string // UP, DOWN, NOLB, …
	Current int    // connections there now
	Total   int    // and ever
}

// Servers returns what HAProxy thinks of a node, by part of its configuration (salt-publish, salt-request).
func (p *HAProxy) Servers(ctx context.Context, node string) (map[string]ServerState, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", p.Socket)
	if err != nil {
		return nil, fmt.Errorf("ask haproxy: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, "show stat\n"); err != nil {
		return nil, fmt.Errorf("ask haproxy: %w", err)
	}
	rows, err := csv.NewReader(io.LimitReader(c, 1<<20)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read haproxy's answer: %w", err)
	}
	const part, server, current, total, status = 0, 1, 4, 7, 17
	states := map[string]ServerState{}
	for _, row := range rows {
		if len(row) > status && row[server] == node {
			s := ServerState{Status: row[status]}
			s.Current, _ = strconv.Atoi(row[current])
			s.Total, _ = strconv.Atoi(row[total])
			states[row[part]] = s
		}
	}
	return states, nil
}

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"
)

// HAProxy balances TCP connections to 4505 and 4506 over the nodes, configured as its users do it.
type HAProxy struct {
	*Process
	ConfigPath string
}

var haproxyConfig = template.Must(template.New("haproxy.cfg").Parse(`global
    maxconn 4000
    stats socket {{.Dir}}/haproxy.sock mode 600 level admin

defaults
    mode tcp
    balance roundrobin
    timeout connect 5s
    timeout check 3s
    option clitcpka
    option srvtcpka

# Publications: one connection per minion that may be silent for days.
listen salt-publish
    bind {{.Addr}}:4505
    timeout client 24h
    timeout server 24h
{{- range .Nodes}}
    server {{.Name}} {{.Addr}}:4505 check inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
{{- end}}

# Requests: any request may go to any node.
listen salt-request
    bind {{.Addr}}:4506
    timeout client 10m
    timeout server 10m
{{- range .Nodes}}
    server {{.Name}} {{.Addr}}:4506 check inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
{{- end}}
`))

// NewHAProxy lays out a real HAProxy on the host in front of the nodes.
func (h *Host) NewHAProxy(nodes ...*Host) (*HAProxy, error) {
	path, err := exec.LookPath("haproxy")
	if err != nil {
		path = "/usr/sbin/haproxy"
		if _, err := os.Stat(path); err != nil {
			return nil, errors.New("haproxy is not installed: run 'make setup' as root, or install the package haproxy")
		}
	}
	p := &HAProxy{ConfigPath: filepath.Join(h.dir, "haproxy.cfg")}
	var b bytes.Buffer
	if err := haproxyConfig.Execute(&b, map[string]any{"Dir": h.dir, "Addr": h.Addr, "Nodes": nodes}); err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	if err := os.WriteFile(p.ConfigPath, b.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	p.Process = h.NewProcess(Spec{
		Name: "haproxy", Argv: []string{path, "-db", "-f", p.ConfigPath}, Grace: 5 * time.Second,
		Ready: func(ctx context.Context) error { return h.Accepts(ctx, h.Addr+":4506") },
	})
	return p, nil
}

package lab

import (
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
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterctl/haproxy"
)

// HAProxy balances TCP connections to 4505 and 4506 over the nodes, configured with what saltclusterctl haproxy prints.
type HAProxy struct {
	*Process
	ConfigPath string
	Socket     string // its admin socket
}

// LBOptions vary the configuration; the zero value is the usual one.
type LBOptions struct {
	SendProxy string        // "send-proxy" or "send-proxy-v2": tell the nodes the minions' addresses on 4505
	SendReq   string        // the same on 4506
	Idle      time.Duration // cut connections that are silent for so long; 0: publications a day, requests an hour
	API       int           // port of the nodes' salt-apis; 0: none
}

// maxConn keeps within the limit of open files of a small machine.
const maxConn = 9000

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
	facts := haproxy.Facts{
		Cluster: "lab", PublishPort: 4505, RetPort: 4506, HealthPort: 4580, Heartbeat: 10 * time.Second,
		ForwardTimeout: time.Minute,
	}
	for _, n := range nodes {
		facts.Servers = append(facts.Servers, haproxy.Server{Name: n.Name, Address: n.Addr})
	}
	text, err := haproxy.Write(facts, haproxy.Options{
		Bind: []string{h.Addr}, PublishProxy: o.SendProxy, RequestProxy: o.SendReq, Idle: o.Idle, StatsSocket: p.Socket,
		API: o.API, MaxConn: maxConn, NoPublish: !publish, NoRequest: !request,
	})
	if err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	if err := os.WriteFile(p.ConfigPath, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("configure haproxy: %w", err)
	}
	port := "4506"
	if !request {
		port = "4505"
	}
	p.Process = h.NewProcess(Spec{
		Name: name, Argv: []string{path, "-db", "-f", p.ConfigPath}, Grace: 5 * time.Second,
		Ready: func(ctx context.Context) error { return h.Accepts(ctx, net.JoinHostPort(h.Addr, port)) },
	})
	return p, nil
}

// ServerState is what HAProxy thinks of one server.
type ServerState struct {
	Status  string // UP, DOWN, NOLB, …
	Current int    // connections there now
	Total   int    // and ever
}

// Command gives HAProxy a command by its admin socket, and returns what it answers.
func (p *HAProxy) Command(ctx context.Context, command string) (string, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", p.Socket)
	if err != nil {
		return "", fmt.Errorf("ask haproxy: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, command+"\n"); err != nil {
		return "", fmt.Errorf("ask haproxy: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(c, 1<<20))
	if err != nil {
		return "", fmt.Errorf("ask haproxy: %w", err)
	}
	return string(answer), nil
}

// Servers returns what HAProxy thinks of a node, by part of its configuration (salt-publish, salt-request).
func (p *HAProxy) Servers(ctx context.Context, node string) (map[string]ServerState, error) {
	answer, err := p.Command(ctx, "show stat")
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(answer)).ReadAll()
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

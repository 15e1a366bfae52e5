package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/integration/lab"
)

// Request and Reply are one line of JSON each on the demo's control socket; bin/lab is the other end.
type request struct {
	Args []string `json:"args"`
}

type reply struct {
	Place *lab.Place `json:"place,omitempty"` // run the command there
	Text  string     `json:"text,omitempty"`
	Error string     `json:"error,omitempty"`
}

// control lets bin/lab look into the running demo and break it.
type control struct {
	c       *lab.Cluster
	anchors map[string]*lab.Process
	places  map[string]lab.Place
	procs   map[string]*lab.Process // m1/master, lb/haproxy, min/min06-1, …
}

// linger serves bin/lab until Ctrl-C.
func linger(ctx context.Context, c *lab.Cluster) error {
	k := &control{c: c, anchors: map[string]*lab.Process{}, places: map[string]lab.Place{},
		procs: map[string]*lab.Process{}}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	ln, err := listen(c.Lab)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	defer ln.Close()
	context.AfterFunc(ctx, func() { ln.Close() })
	fmt.Print(hint)
	if path := ln.Addr().String(); path != lab.ControlSocket() {
		fmt.Printf("Another demo is running. For this one, first: export %s=%s\n\n", lab.ControlEnv, path)
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return nil // Ctrl-C
		}
		go k.serve(ctx, conn)
	}
}

// listen opens the usual control socket; one in the lab's directory when another demo uses that.
func listen(l *lab.Lab) (net.Listener, error) {
	path := lab.ControlSocket()
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return net.Listen("unix", filepath.Join(l.Dir(), "control.sock"))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

const hint = `
The cluster runs until Ctrl-C. In another terminal, from this directory:

    bin/lab m1 salt '*' test.ping              any Salt command on any of the hosts m1 m2 m3 lb min
    bin/lab m3 salt-key -L                     keys are the same everywhere
    bin/lab m2 saltclusterctl members          who belongs, who is there
    bin/lab min08-1 salt-call pillar.items     a minion's own commands
    bin/lab kill m2/master                     kill -9; also: stop start restart pause resume; m2/saltclusterd, lb/haproxy, min/min06-1
    bin/lab partition m1 m2,m3                 cut the network; also: isolate HOST, delay HOST 50ms, heal
    bin/lab ps                                 what runs, and where its log is

`

func (k *control) prepare(ctx context.Context) error {
	for _, h := range k.c.Lab.Hosts() {
		a, err := h.Anchor(ctx)
		if err != nil {
			return err
		}
		k.anchors[h.Name], k.places[h.Name] = a, h.Place(a)
	}
	for _, n := range k.c.Nodes {
		k.places[n.Name] = n.Place(k.anchors[n.Name])
	}
	for _, m := range k.c.Minions {
		k.places[m.ID] = m.Host().Place(k.anchors[m.Host().Name], m.Env()...)
	}
	for _, p := range k.c.Lab.Processes() {
		k.procs[p.String()] = p
	}
	return nil
}

func (k *control) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	var q request
	if err := json.NewDecoder(conn).Decode(&q); err != nil {
		return
	}
	r, err := k.do(ctx, q.Args)
	if err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(r)
}

func (k *control) do(ctx context.Context, args []string) (reply, error) {
	if len(args) == 0 {
		return reply{Text: strings.TrimSpace(hint)}, nil
	}
	if p, ok := k.places[args[0]]; ok {
		return reply{Place: &p}, nil
	}
	rest := args[1:]
	switch verb := args[0]; verb {
	case "ps":
		return reply{Text: k.ps()}, nil
	case "heal":
		return reply{Text: "healed"}, k.c.Lab.Heal(ctx)
	case "partition", "isolate", "delay":
		return reply{Text: "done; 'bin/lab heal' ends it"}, k.fault(ctx, verb, rest)
	default:
		act, ok := actions[verb]
		if !ok || len(rest) == 0 {
			return reply{}, fmt.Errorf("no host, minion or verb %q (hosts: m1 m2 m3 lb min)", verb)
		}
		return reply{Text: "done"}, k.each(rest, func(p *lab.Process) error { return act(ctx, p) })
	}
}

var actions = map[string]func(context.Context, *lab.Process) error{
	"kill":    func(_ context.Context, p *lab.Process) error { return p.Kill() },
	"stop":    func(ctx context.Context, p *lab.Process) error { return p.Stop(ctx) },
	"start":   func(ctx context.Context, p *lab.Process) error { return p.Start(ctx) },
	"restart": func(ctx context.Context, p *lab.Process) error { return p.Restart(ctx) },
	"pause":   func(_ context.Context, p *lab.Process) error { return p.Pause() },
	"resume":  func(_ context.Context, p *lab.Process) error { return p.Resume() },
}

func (k *control) each(names []string, do func(*lab.Process) error) error {
	var errs []error
	for _, name := range names {
		p, ok := k.procs[name]
		if !ok {
			errs = append(errs, fmt.Errorf("no process %q, see 'bin/lab ps'", name))
			continue
		}
		errs = append(errs, do(p))
	}
	return errors.Join(errs...)
}

func (k *control) fault(ctx context.Context, verb string, args []string) error {
	want := map[string]int{"partition": 2, "isolate": 1, "delay": 2}[verb]
	if len(args) != want {
		return fmt.Errorf("%s takes %d arguments", verb, want)
	}
	a, err := k.hosts(args[0])
	if err != nil {
		return err
	}
	switch verb {
	case "isolate":
		return k.c.Lab.Isolate(ctx, a[0])
	case "delay":
		each, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		return k.c.Lab.Delay(ctx, a[0], lab.Latency{Each: each})
	}
	b, err := k.hosts(args[1])
	if err != nil {
		return err
	}
	return k.c.Lab.Partition(ctx, a, b)
}

func (k *control) hosts(names string) ([]*lab.Host, error) {
	var found []*lab.Host
	for _, name := range strings.Split(names, ",") {
		for _, h := range k.c.Lab.Hosts() {
			if h.Name == name {
				found = append(found, h)
			}
		}
	}
	if len(found) != strings.Count(names, ",")+1 {
		return nil, fmt.Errorf("unknown host in %q", names)
	}
	return found, nil
}

func (k *control) ps() string {
	var b strings.Builder
	for _, p := range k.c.Lab.Processes() {
		if p.Name == "anchor" {
			continue
		}
		state := "stopped"
		if p.Running() {
			state = fmt.Sprint("pid ", p.PID())
		}
		fmt.Fprintf(&b, "%-18s %-12s %s\n", p, state, p.LogPath())
	}
	return strings.TrimRight(b.String(), "\n")
}

package lab

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed commands.py
var commandsProgram []byte

// commandsOf returns what runs commands of this configuration, nil for one that is a program of its own. Importing
// Salt's code is most of what its commands compute, and commands are most of what scenarios compute. So all but the
// first of a configuration are forks of one process that has imported it. With SALTCLUSTER_LONG=1 each is a program of
// its own, as an operator starts it; so it is on a host with a disk of its own, which may be taken away.
func (l *Lab) commandsOf(s *Salt, name string) *commands {
	if os.Getenv("SALTCLUSTER_LONG") != "" || s.host.disk != nil || !slices.Contains(forked, name) {
		return nil
	}
	key := s.host.Name + " " + s.ConfigDir + " " + s.Version
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commands == nil {
		l.commands = map[string]*commands{}
	}
	c := l.commands[key]
	if c == nil {
		l.commands[key] = &commands{salt: *s, socket: filepath.Join(l.dir, fmt.Sprintf("c%d", len(l.commands)))}
	}
	return c // nil the first time
}

// forked are the commands that commands.py knows.
var forked = []string{"salt", "salt-run", "salt-key", "salt-call"}

// commands is a process that runs Salt's commands with one configuration.
type commands struct {
	salt   Salt
	socket string

	mu     sync.Mutex
	run    *running
	served bool // it works; one that ends before it has served is not started again
}

// connect returns a connection to the process; nil: it does not serve, perhaps not yet, and was started if need be.
func (c *commands) connect() *net.UnixConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.salt.host
	switch {
	case c.run != nil && c.run.ended() && !c.served:
		return nil
	case c.run == nil || c.run.ended():
		_ = os.Remove(c.socket)
		program := filepath.Join(h.lab.dir, "commands.py")
		log, err := os.OpenFile(c.socket+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil || os.WriteFile(program, commandsProgram, 0o644) != nil {
			return nil
		}
		defer log.Close()
		python := filepath.Join(h.lab.saltBin(c.salt.Version), "python")
		c.run, err = h.launch(order{Argv: []string{python, program, c.socket}, Env: c.salt.Env()}, nil, log, log)
		if err != nil {
			h.lab.Logf("start %s on %s: %v", program, h.Name, err)
		}
		return nil
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: c.socket, Net: "unixpacket"})
	if err != nil {
		return nil
	}
	c.served = true
	return conn
}

func (c *commands) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil && !c.run.ended() {
		_ = killTree(c.run.cmd.Process.Pid, 10*time.Second)
		<-c.run.done
	}
}

// exec is Host.Exec of one of Salt's commands.
func (c *commands) exec(ctx context.Context, conn *net.UnixConn, argv []string) (Result, error) {
	defer conn.Close()
	h, res, start := c.salt.host, Result{Argv: argv}, time.Now()
	failed := func(err error) (Result, error) {
		return res, fmt.Errorf("run %s on %s: %w", strings.Join(argv, " "), h.Name, err)
	}
	var out, errs sink
	for _, s := range []*sink{&out, &errs} {
		if err := s.open(); err != nil {
			return failed(err)
		}
		defer s.close()
	}
	text, err := json.Marshal(map[string]any{"argv": argv, "dir": h.dir, "env": mergeEnv(h.environ(), c.salt.Env()...)})
	if err != nil {
		return failed(err)
	}
	_, _, err = conn.WriteMsgUnix(text, syscall.UnixRights(int(out.w.Fd()), int(errs.w.Fd())), nil)
	if err != nil {
		return failed(err)
	}
	pid, err := readNumber(conn)
	if err != nil {
		return failed(err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = killTree(pid, 10*time.Second)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	})
	res.Code, err = readNumber(conn)
	if stop(); err != nil {
		res.Code, err = 137, nil // killed with the host
	}
	if ctx.Err() != nil {
		_, err = failed(context.Cause(ctx))
	}
	res.Stdout, res.Stderr, res.Took = out.text(), errs.text(), time.Since(start)
	return res, err
}

func readNumber(conn *net.UnixConn) (int, error) {
	answer := make([]byte, 32)
	n, err := conn.Read(answer)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(answer[:n]))
}

// sink is a pipe, and what was written into it.
type sink struct {
	r, w *os.File
	all  bytes.Buffer
	done chan struct{}
}

func (s *sink) open() (err error) {
	if s.r, s.w, err = os.Pipe(); err != nil {
		return err
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_, _ = io.Copy(&s.all, s.r)
	}()
	return nil
}

// text waits for the end of what was written, but not long: a process that was left behind may hold the pipe.
func (s *sink) text() string {
	s.w.Close()
	_ = s.r.SetReadDeadline(time.Now().Add(5 * time.Second))
	<-s.done
	return s.all.String()
}

func (s *sink) close() {
	s.w.Close()
	s.r.Close()
	<-s.done
}

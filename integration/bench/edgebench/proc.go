package main

import (
	"bufio"
	"context"
	_ "embed"
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
)

//go:embed load/load.c
var loadSource []byte

// build compiles the load generator into a temporary directory.
func build(ctx context.Context) (path string, clean func(), err error) {
	dir, err := os.MkdirTemp("", "edgebench-")
	if err != nil {
		return "", nil, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	src := filepath.Join(dir, "load.c")
	path = filepath.Join(dir, "load")
	if err = os.WriteFile(src, loadSource, 0o600); err == nil {
		var out []byte
		out, err = exec.CommandContext(ctx, "gcc", "-O2", "-o", path, src, "-lzmq", "-lpthread").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build the load generator (needs gcc and libzmq3-dev): %w\n%s", err, out)
		}
	}
	if err != nil {
		clean()
		return "", nil, err
	}
	return path, clean, nil
}

// proc is a child process that is talked to in lines.
type proc struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, path string, args ...string) (*proc, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &proc{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := p.expect("ready"); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *proc) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	return err
}

func (p *proc) line() (string, error) {
	s, err := p.out.ReadString('\n')
	return strings.TrimSpace(s), err
}

func (p *proc) expect(want string) error {
	got, err := p.line()
	if err == nil && got != want {
		err = fmt.Errorf("child said %q, not %q", got, want)
	}
	return err
}

func (p *proc) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// cpu is the processor time the process has used.
func (p *proc) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	ut, _ := strconv.Atoi(f[11])
	st, _ := strconv.Atoi(f[12])
	return time.Duration(ut+st) * 10 * time.Millisecond
}

// rss is the resident memory of the process in bytes.
func (p *proc) rss() int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n * os.Getpagesize()
}

// freePort asks the kernel for a port nobody uses.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return "", errors.New("no port")
	}
	return strconv.Itoa(addr.Port), nil
}

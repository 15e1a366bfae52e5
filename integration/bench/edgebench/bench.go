package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// bench runs the measurements and prints them as markdown.
type bench struct {
	ctx  context.Context
	load string
	o    options
}

func (b *bench) all() error {
	want := func(what string) bool { return strings.Contains(b.o.what, what) }
	if want("echo") {
		fmt.Print(echoHead)
		for _, n := range b.o.clients {
			if err := b.echo(n); err != nil {
				return fmt.Errorf("echo, %d clients: %w", n, err)
			}
		}
	}
	for _, mode := range []string{"fanout", "stalled"} {
		if !want(mode) {
			continue
		}
		fmt.Print(fanoutHead(mode))
		for _, size := range b.o.sizes {
			for _, n := range b.o.clients {
				if err := b.fanout(n, size, mode == "stalled"); err != nil {
					return fmt.Errorf("%s, %d clients, %d bytes: %w", mode, n, size, err)
				}
			}
		}
	}
	return nil
}

// server starts ours or libzmq's server of a kind on a free port.
func (b *bench) server(kind string, ours bool) (*proc, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	if ours {
		self, err := os.Executable()
		if err != nil {
			return nil, "", err
		}
		p, err := start(b.ctx, self, "serve", kind, port)
		return p, port, err
	}
	p, err := start(b.ctx, b.load, map[string]string{"req": "router", "pub": "pub"}[kind], port)
	return p, port, err
}

// connected waits until the server has as many connections as wanted: both
// servers are asked through the kernel.
func connected(port string, want int) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		n, err := established(port)
		if err != nil || n >= want {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("clients did not connect in time")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

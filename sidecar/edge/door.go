package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// door listens and lets connections in, as many as allowed.
type door struct {
	addrs      []string
	listen     func(ctx context.Context, network, addr string) (net.Listener, error) // nil: anew
	frost      *frost
	maxConns   int
	maxPerAddr int            // 0: no limit
	proxies    []netip.Prefix // who must say for whom it connects
	log        *slog.Logger
	met        *metrics
	admit      func(*net.TCPConn, netip.AddrPort, *herald) // must not block

	turning sync.Mutex // held while it is opened again, shut for good, or listens on other addresses

	mu      sync.Mutex
	lns     []net.Listener
	isShut  bool
	inside  int
	serving []*stance // of the acceptors
	perAddr map[netip.Addr]int
}

// keepAlive is what a stock master sets on its sockets.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 3}

// keepAliveOptions are keepAlive as the kernel has it.
var keepAliveOptions = []struct{ level, name, value int }{
	{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAlive.Idle / time.Second)},
	{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAlive.Interval / time.Second)},
	{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAlive.Count},
}

// bequeath sets keepAlive on a listener, from which connections inherit it. That saves eight system calls for each:
// package net's own keep-alives, and these after them. Where package net sets its own all the same, as it does for a
// listener of another process, these have to be set again.
func bequeath(ln net.Listener) {
	control(ln, func(fd int) {
		for _, o := range keepAliveOptions {
			_ = unix.SetsockoptInt(fd, o.level, o.name, o.value)
		}
	})
}

// hasKeepAlive tells whether a connection has inherited keepAlive.
func hasKeepAlive(c *net.TCPConn) (has bool) {
	control(c, func(fd int) {
		has = !slices.ContainsFunc(keepAliveOptions, func(o struct{ level, name, value int }) bool {
			v, err := unix.GetsockoptInt(fd, o.level, o.name)
			return err != nil || v != o.value
		})
	})
	return has
}

// control calls f with the descriptor of what has one.
func control(c any, f func(fd int)) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// open listens. After shut it listens on the same ports as before.
func (d *door) open(ctx context.Context) error {
	var lns []net.Listener
	for i, a := range d.addrs {
		ln, err := d.listener(ctx, a)
		if err != nil {
			closeAll(lns)
			return fmt.Errorf("listen on %s: %w", a, err)
		}
		lns = append(lns, ln)
		if _, port, _ := net.SplitHostPort(a); port == "0" {
			d.addrs[i] = ln.Addr().String()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lns, d.isShut = lns, false
	if d.perAddr == nil {
		d.perAddr = make(map[netip.Addr]int)
	}
	return nil
}

// shut stops listening; accept returns.
func (d *door) shut() {
	d.mu.Lock()
	d.isShut = true
	d.mu.Unlock()
	closeAll(d.listeners())
}

func closeAll(lns []net.Listener) {
	for _, ln := range lns {
		_ = ln.Close()
	}
}

func (d *door) listeners() []net.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lns
}

func (d *door) listening() []net.Addr {
	lns := d.listeners()
	out := make([]net.Addr, 0, len(lns))
	for _, ln := range lns {
		out = append(out, ln.Addr())
	}
	return out
}

// accept serves one listener until it is shut. When descriptors run out it
// waits and retries: connections then queue in the kernel.
func (d *door) accept(ctx context.Context, ln net.Listener) error {
	const shortest, longest = 10 * time.Millisecond, time.Second
	pause := shortest
	looked, inherited := false, false // whether connections have keepAlive from their listener
	here := &stance{}
	d.mu.Lock()
	d.serving = append(d.serving, here)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.serving = slices.DeleteFunc(d.serving, func(s *stance) bool { return s == here })
		d.mu.Unlock()
		d.frost.stir()
	}()
	for {
		c, err := ln.Accept()
		if err == nil {
			pause = shortest
			tcp := c.(*net.TCPConn)
			if !looked {
				looked, inherited = true, hasKeepAlive(tcp)
			}
			d.enter(tcp, inherited)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return nil
		}
		if d.frost.on() && errors.Is(err, os.ErrDeadlineExceeded) {
			if d.frost.park(here) != nil {
				return nil
			}
			continue
		}
		var ne net.Error
		//lint:ignore SA1019 the only name net has for EMFILE and its kind
		if !errors.As(err, &ne) || !ne.Temporary() {
			return fmt.Errorf("accept on %s: %w", ln.Addr(), err)
		}
		d.log.Warn("accept failed, trying again", "addr", ln.Addr().String(), "err", err, "dur", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// enter lets a connection in, or not; alive: it has keepAlive.
func (d *door) enter(c *net.TCPConn, alive bool) {
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	place := remote.Addr()
	var h *herald
	if d.heralded(place) {
		h, place = &herald{door: d}, unnamed
	}
	if r := d.take(place); r != reasonNone {
		d.met.ended(r)
		_ = c.SetLinger(0)
		_ = c.Close()
		return
	}
	d.met.accepted.Inc()
	if !alive {
		_ = c.SetKeepAliveConfig(keepAlive)
	}
	d.admit(c, remote, h)
}

func (d *door) take(a netip.Addr) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.inside >= d.maxConns:
		return ReasonFull
	case a != unnamed && d.maxPerAddr > 0 && d.perAddr[a] >= d.maxPerAddr:
		return ReasonAddrFull
	}
	d.inside++
	d.perAddr[a]++
	return reasonNone
}

// stop waits until the acceptors have parked; start lets them continue after a thaw.
func (d *door) stop(ctx context.Context) error {
	d.turning.Lock() // who makes another listener has made it, or leaves it
	d.setDeadline(longAgo)
	d.turning.Unlock()
	return d.frost.await(ctx, "acceptors", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !slices.ContainsFunc(d.serving, func(s *stance) bool { return !s.still.Load() })
	})
}

func (d *door) start() { d.setDeadline(time.Time{}) }

func (d *door) setDeadline(t time.Time) {
	for _, ln := range d.listeners() {
		if l, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
			_ = l.SetDeadline(t)
		}
	}
}

// readmit counts a connection that was let in by another process.
func (d *door) readmit(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.perAddr == nil {
		d.perAddr = make(map[netip.Addr]int)
	}
	d.inside++
	d.perAddr[a]++
}

// leave gives a connection's place back.
func (d *door) leave(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	d.uncount(a)
}

// uncount wants mu.
func (d *door) uncount(a netip.Addr) {
	if d.perAddr[a]--; d.perAddr[a] == 0 {
		delete(d.perAddr, a)
	}
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside
}

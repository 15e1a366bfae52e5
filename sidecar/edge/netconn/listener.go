package netconn

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
	"time"

	"saltclusterd/backoff"
	"saltclusterd/nowait"

	"golang.org/x/sys/unix"
)

// ListenerConfig configures a Listener.
type ListenerConfig struct {
	Addrs []string // host:port to listen on
	// Listen gives the listeners; nil: they are made.
	Listen     func(ctx context.Context, network, addr string) (net.Listener, error)
	Freezer    *Freezer
	MaxConns   int
	MaxPerAddr int            // 0: no limit, also of networks; see places
	Proxies    []netip.Prefix // who must say for whom it connects
	Logger     *slog.Logger
	Metrics    *Metrics
	Admit      func(Accepted) // must not block
}

// Listener listens and lets connections in, as many as allowed.
type Listener struct {
	cfg   ListenerConfig
	addrs []string

	// Changing is held while it is opened again, shut for good, or listens on other addresses.
	Changing sync.Mutex

	mu        sync.Mutex
	lns       []net.Listener
	isShut    bool
	inside    int
	acceptors []*ReaderState
	places    places
}

// NewListener returns a Listener, which listens after Open.
func NewListener(cfg ListenerConfig) *Listener {
	return &Listener{cfg: cfg, addrs: slices.Clone(cfg.Addrs), places: newPlaces(cfg.MaxConns, cfg.MaxPerAddr)}
}

// Accepted is a connection that was let in.
type Accepted struct {
	tcp      *net.TCPConn
	remote   netip.AddrPort
	listener *Listener
	header   *proxyHeader // nil: no load balancer names the peer
}

// counted is the address it is counted under.
func (a Accepted) counted() netip.Addr {
	if a.header != nil {
		return unnamed
	}
	return a.remote.Addr()
}

// Refuse closes the connection, which has not been served.
func (a Accepted) Refuse() {
	_ = a.tcp.Close()
	a.listener.Leave(a.counted())
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

// setKeepAlive sets keepAlive on a listener, from which connections inherit it. That saves eight system calls for each:
// package net's own keep-alives, and these after them. Where package net sets its own all the same, as it does for a
// listener of another process, these have to be set again.
func setKeepAlive(ln net.Listener) {
	nowait.Control(ln, func(fd int) {
		for _, o := range keepAliveOptions {
			_ = unix.SetsockoptInt(fd, o.level, o.name, o.value)
		}
	})
}

// hasKeepAlive tells whether a connection has inherited keepAlive.
func hasKeepAlive(c *net.TCPConn) (has bool) {
	nowait.Control(c, func(fd int) {
		has = !slices.ContainsFunc(keepAliveOptions, func(o struct{ level, name, value int }) bool {
			v, err := unix.GetsockoptInt(fd, o.level, o.name)
			return err != nil || v != o.value
		})
	})
	return has
}

// Open listens. After Shut it listens on the same ports as before.
func (l *Listener) Open(ctx context.Context) error {
	var lns []net.Listener
	for i, a := range l.addrs {
		ln, err := l.listener(ctx, a)
		if err != nil {
			closeAll(lns)
			return fmt.Errorf("listen on %s: %w", a, err)
		}
		lns = append(lns, ln)
		if _, port, _ := net.SplitHostPort(a); port == "0" {
			l.addrs[i] = ln.Addr().String()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lns, l.isShut = lns, false
	return nil
}

// Shut stops listening; Accept returns.
func (l *Listener) Shut() {
	l.mu.Lock()
	l.isShut = true
	l.mu.Unlock()
	closeAll(l.Listeners())
}

func closeAll(lns []net.Listener) {
	for _, ln := range lns {
		_ = ln.Close()
	}
}

// Listeners returns what is listened on.
func (l *Listener) Listeners() []net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lns
}

// Addr lists the addresses listened on.
func (l *Listener) Addr() []net.Addr {
	lns := l.Listeners()
	out := make([]net.Addr, 0, len(lns))
	for _, ln := range lns {
		out = append(out, ln.Addr())
	}
	return out
}

// Accept serves one listener until it is shut. When descriptors run out it
// waits and retries: connections then queue in the kernel.
func (l *Listener) Accept(ctx context.Context, ln net.Listener) error {
	retry := backoff.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	looked, inherited := false, false // whether connections have keepAlive from their listener
	here := &ReaderState{}
	l.mu.Lock()
	l.acceptors = append(l.acceptors, here)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.acceptors = slices.DeleteFunc(l.acceptors, func(s *ReaderState) bool { return s == here })
		l.mu.Unlock()
		l.cfg.Freezer.Notify()
	}()
	for {
		c, err := ln.Accept()
		if err == nil {
			retry.Reset()
			tcp := c.(*net.TCPConn)
			if !looked {
				looked, inherited = true, hasKeepAlive(tcp)
			}
			l.enter(tcp, inherited)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return nil
		}
		if l.cfg.Freezer.On() && errors.Is(err, os.ErrDeadlineExceeded) {
			if l.cfg.Freezer.park(here) != nil {
				return nil
			}
			continue
		}
		var ne net.Error
		//lint:ignore SA1019 the only name net has for EMFILE and its kind
		if !errors.As(err, &ne) || !ne.Temporary() {
			return fmt.Errorf("accept on %s: %w", ln.Addr(), err)
		}
		pause := retry.Next()
		l.cfg.Logger.Warn("accept failed, trying again", "addr", ln.Addr().String(), "err", err, "dur", pause)
		if !backoff.Sleep(ctx, pause) {
			return nil
		}
	}
}

// Accepted returns what Admit is given for a connection.
func (l *Listener) Accepted(c *net.TCPConn) Accepted {
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	a := Accepted{tcp: c, remote: netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()), listener: l}
	if l.isProxy(a.remote.Addr()) {
		a.header = &proxyHeader{listener: l}
	}
	return a
}

// enter lets a connection in, or not; alive: it has keepAlive.
func (l *Listener) enter(c *net.TCPConn, alive bool) {
	a := l.Accepted(c)
	if r := l.take(a.counted()); r != ReasonNone {
		l.cfg.Metrics.Ended(r)
		_ = c.SetLinger(0)
		_ = c.Close()
		return
	}
	l.cfg.Metrics.accepted.Inc()
	if !alive {
		_ = c.SetKeepAliveConfig(keepAlive)
	}
	l.cfg.Admit(a)
}

func (l *Listener) take(a netip.Addr) Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.inside >= l.cfg.MaxConns:
		return ReasonFull
	case l.places.isFull(a):
		return ReasonAddrFull
	}
	l.inside++
	l.places.add(a)
	return ReasonNone
}

// Stop waits until the acceptors have parked; Start lets them continue after a thaw.
func (l *Listener) Stop(ctx context.Context) error {
	l.Changing.Lock() // another listener has been made by now, or is not made
	l.setDeadline(longAgo)
	l.Changing.Unlock()
	return l.cfg.Freezer.Await(ctx, "acceptors", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !slices.ContainsFunc(l.acceptors, func(s *ReaderState) bool { return !s.still.Load() })
	})
}

// Start lets the acceptors continue.
func (l *Listener) Start() { l.setDeadline(time.Time{}) }

func (l *Listener) setDeadline(t time.Time) {
	for _, ln := range l.Listeners() {
		if l, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
			_ = l.SetDeadline(t)
		}
	}
}

// Readmit counts a connection that was let in by another process.
func (l *Listener) Readmit(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside++
	l.places.add(a)
}

// Leave gives a connection's place back.
func (l *Listener) Leave(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	l.places.remove(a)
}

// Count returns the number of connections.
func (l *Listener) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inside
}

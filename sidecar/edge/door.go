package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// door listens and lets connections in, as many as allowed.
type door struct {
	addrs      []string
	maxConns   int
	maxPerAddr int // 0: no limit
	log        *slog.Logger
	met        *metrics
	admit      func(*net.TCPConn, netip.AddrPort) // must not block

	lns     []net.Listener
	mu      sync.Mutex
	inside  int
	perAddr map[netip.Addr]int
}

// keepAlive is what a stock master sets on its sockets.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 3}

func (d *door) open(ctx context.Context) error {
	d.perAddr = make(map[netip.Addr]int)
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	for _, a := range d.addrs {
		ln, err := lc.Listen(ctx, "tcp", a)
		if err != nil {
			d.shut()
			d.lns = nil // so that open can be tried again
			return fmt.Errorf("listen on %s: %w", a, err)
		}
		d.lns = append(d.lns, ln)
	}
	return nil
}

// shut stops listening; accept returns.
func (d *door) shut() {
	for _, ln := range d.lns {
		_ = ln.Close()
	}
}

func (d *door) listening() []net.Addr {
	out := make([]net.Addr, 0, len(d.lns))
	for _, ln := range d.lns {
		out = append(out, ln.Addr())
	}
	return out
}

// accept serves one listener until it is shut. When descriptors run out it
// waits and goes on: connections then queue in the kernel.
func (d *door) accept(ctx context.Context, ln net.Listener) error {
	const shortest, longest = 10 * time.Millisecond, time.Second
	pause := shortest
	for {
		c, err := ln.Accept()
		if err == nil {
			pause = shortest
			d.enter(c.(*net.TCPConn))
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return nil
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

func (d *door) enter(c *net.TCPConn) {
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if r := d.take(remote.Addr()); r != reasonNone {
		d.met.ended(r)
		_ = c.SetLinger(0)
		_ = c.Close()
		return
	}
	d.met.accepted.Inc()
	d.admit(c, remote)
}

func (d *door) take(a netip.Addr) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.inside >= d.maxConns:
		return ReasonFull
	case d.maxPerAddr > 0 && d.perAddr[a] >= d.maxPerAddr:
		return ReasonAddrFull
	}
	d.inside++
	d.perAddr[a]++
	return reasonNone
}

// leave gives a connection's place back.
func (d *door) leave(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.perAddr[a]--; d.perAddr[a] == 0 {
		delete(d.perAddr, a)
	}
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside
}

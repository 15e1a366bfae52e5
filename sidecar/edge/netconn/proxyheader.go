package netconn

import (
	"errors"
	"fmt"
	"net/netip"

	"saltclusterd/sidecar/proxyproto"
)

// proxyHeader is the header of a load balancer, which comes before anything of the peer itself. It is the reader's.
type proxyHeader struct {
	listener *Listener
	buf      []byte
}

// AfterProxyHeader takes input until the header of a load balancer is complete, and returns what is the peer's own.
func (c *Conn) AfterProxyHeader(in []byte) ([]byte, error) {
	if c.header == nil {
		return in, nil
	}
	b := append(c.header.buf, in...)
	h, n, err := proxyproto.Parse(b)
	if errors.Is(err, proxyproto.ErrShort) {
		c.header.buf = b
		return nil, nil
	}
	if err != nil {
		return nil, NewError(ReasonProxyHeader, fmt.Sprintf("%v from %s", err, c.remote.Addr()))
	}
	ln := c.header.listener
	c.header = nil
	if h.Source.IsValid() {
		c.remote = h.Source
	}
	if r := ln.countAs(c.remote.Addr()); r != ReasonNone {
		return nil, NewError(r, "too many connections from one address")
	}
	c.counted = c.remote.Addr()
	return b[n:], nil
}

// isProxy tells whether connections from a must begin with a header.
func (l *Listener) isProxy(a netip.Addr) bool {
	for _, p := range l.cfg.Proxies {
		if p.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// countAs moves a connection from the unnamed ones to those of its true address.
func (l *Listener) countAs(a netip.Addr) Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places.isFull(a) {
		return ReasonAddrFull
	}
	l.places.remove(unnamed)
	l.places.add(a)
	return ReasonNone
}

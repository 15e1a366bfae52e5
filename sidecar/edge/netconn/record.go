package netconn

import (
	"fmt"
	"net/netip"
	"time"

	"saltclusterd/sidecar/handover"
)

// Encode writes the connection down; from now on another process may have its descriptor, which is returned. false: it
// is about to end, or its peer has to connect again, because no load balancer has named it yet or it uses TLS. Times
// are written as spans until now: clocks of two processes begin differently. Wants Mu.
func (c *Conn) Encode(e *handover.Encoder, now int64) (fd int, ok bool) {
	if !c.MayHandOver() {
		return 0, false
	}
	c.handed = true
	e.Addr(c.remote)
	e.Bool(c.ready)
	e.Duration(time.Duration(now - c.heard.Load()))
	return c.fd, true
}

// MayHandOver tells whether Encode writes something. Wants Mu.
func (c *Conn) MayHandOver() bool {
	return c.Reason() == ReasonNone && c.header == nil && !c.IsSecured()
}

// Decode is Encode backwards; it leaves the descriptor alone.
func (c *Conn) Decode(d *handover.Decoder, fd int, now int64, l *Listener) error {
	c.fd, c.listener, c.freezer, c.done = fd, l, l.cfg.Freezer, make(chan struct{})
	c.remote = d.Addr()
	c.counted = c.remote.Addr()
	c.ready = d.Bool()
	c.heard.Store(now - int64(d.Duration()))
	if err := d.Err(); err != nil {
		return err
	}
	if c.remote.Addr() == (netip.Addr{}) {
		return fmt.Errorf("address of a connection: %w", handover.ErrState)
	}
	return nil
}

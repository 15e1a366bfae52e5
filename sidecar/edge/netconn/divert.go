package netconn

import (
	"errors"
	"net"
	"os"
	"time"

	"saltclusterd/sidecar/edge/front"
)

// errDiverted makes Follow continue on another descriptor.
var errDiverted = errors.New("connection was diverted")

// Divert gives the connection, of which begun was read last, to the front. From now on c is what the peer says inside
// of TLS. It is called by what Follow calls, which returns the error to it, before anything was written. handshake is
// the time until the connection must be ready, once TLS is.
func (c *Conn) Divert(f *front.Front, begun []byte, handshake time.Duration) error {
	conn, ok := c.socket().pollable.(net.Conn)
	if !ok {
		conn = fileConn{c.socket().pollable.(*os.File)} // taken over
	}
	link, err := f.Divert(conn, begun, Network(c.remote.Addr()))
	if err != nil {
		return WrapError(ReasonTLS, err)
	}
	c.link.Store(link)
	c.handshake = handshake
	if c.Reason() != ReasonNone { // cut before there was a link
		_ = c.socket().SetReadDeadline(longAgo)
		_ = link.SetWriteDeadline(longAgo)
	}
	return errDiverted
}

// followLink is follow with TLS. While the reader waits for input, crypto/tls decrypts: that touches nothing of the
// edge's, so the reader stands still. Input that comes with a freeze is kept.
func (c *Conn) followLink(l *front.Link, handle func([]byte) error) error {
	for {
		c.reader.idle(c.freezer)
		if c.handshake > 0 {
			select {
			case <-l.Shaken():
			case <-c.done:
			}
		}
		in, err := []byte(nil), error(nil)
		if c.Reason() == ReasonNone {
			if c.handshake > 0 {
				c.LimitHandshake(c.handshake)
				c.handshake = 0
			}
			in, err = l.Read()
		}
		switch {
		case !c.reader.resume(c.freezer):
			l.Unread(len(in))
			return ErrFrozen
		case c.Reason() != ReasonNone:
			return ErrCut
		case len(in) > 0:
			c.heard.Store(Clock())
			if err := handle(in); err != nil {
				return err
			}
		}
		if errors.Is(err, front.ErrTLS) {
			return WrapError(ReasonTLS, err)
		}
		if err != nil {
			return err
		}
	}
}

// fileConn is a connection that another process has accepted.
type fileConn struct{ *os.File }

func (fileConn) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (fileConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// IsSecured tells whether the peer uses TLS.
func (c *Conn) IsSecured() bool { return c.link.Load() != nil }

// Identity is who the peer has proved to be by its certificate.
func (c *Conn) Identity() front.Identity {
	if l := c.link.Load(); l != nil {
		return l.Identity()
	}
	return front.Identity{}
}

// release closes the connection's descriptor. discard: the peer gets nothing more.
func (c *Conn) release(s *socket, discard bool) {
	if l := c.link.Load(); l != nil {
		l.End(discard)
		return
	}
	_ = s.Close()
}

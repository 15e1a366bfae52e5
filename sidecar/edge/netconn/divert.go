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
// the time until the connection must be ready.
func (c *Conn) Divert(f *front.Front, begun []byte, handshake time.Duration) error {
	conn, ok := c.socket().pollable.(net.Conn)
	if !ok {
		conn = fileConn{c.socket().pollable.(*os.File)} // taken over
	}
	link, err := f.Divert(conn, begun, Network(c.remote.Addr()))
	if err != nil {
		return WrapError(ReasonTLS, err)
	}
	inside, err := newSocket(link.Edge())
	if err != nil {
		_ = link.Edge().Close()
		link.End(true)
		return err
	}
	c.Mu.Lock()
	c.link.Store(link)
	c.sock.Store(inside)
	_ = inside.raw.Control(func(fd uintptr) { c.fd = int(fd) })
	c.Mu.Unlock()
	c.LimitHandshake(handshake)
	return errDiverted
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
	_ = s.Close()
	if l := c.link.Load(); l != nil {
		l.End(discard)
	}
}

// explain adds to the end of a connection why TLS has failed.
func (c *Conn) explain(err error) error {
	if l := c.link.Load(); l != nil && l.Err() != nil && err != nil && !errors.Is(err, ErrFrozen) {
		return WrapError(ReasonTLS, l.Err())
	}
	return err
}

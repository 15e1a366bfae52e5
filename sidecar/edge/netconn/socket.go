package netconn

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// socket is a descriptor and the poller's help with it: a *net.TCPConn that
// was accepted, or an *os.File around a descriptor that was taken over.
type socket struct {
	pollable
	raw syscall.RawConn
}

type pollable interface {
	syscall.Conn
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	Close() error
}

func newSocket(p pollable) (*socket, error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("raw connection: %w", err)
	}
	return &socket{p, raw}, nil
}

// socket returns the connection's. One that was taken over is made known to
// the poller by the first who needs that: it can be written to before.
func (c *Conn) socket() *socket {
	if s := c.sock.Load(); s != nil {
		return s
	}
	c.enroll.Do(func() {
		s, _ := newSocket(os.NewFile(uintptr(c.fd), "minion")) // an open file always has a raw connection
		c.sock.Store(s)
		if c.Reason() != ReasonNone {
			_ = s.SetDeadline(longAgo)
		}
	})
	return c.sock.Load()
}

// Enroll makes a connection that was taken over known to the poller.
func (c *Conn) Enroll() { c.socket() }

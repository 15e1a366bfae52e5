package edge

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
func (l *link) socket() *socket {
	if s := l.sock.Load(); s != nil {
		return s
	}
	l.enroll.Do(func() {
		s, _ := newSocket(os.NewFile(uintptr(l.fd), "minion")) // an open file always has a raw connection
		l.sock.Store(s)
		if l.reason() != reasonNone {
			_ = s.SetDeadline(longAgo)
		}
	})
	return l.sock.Load()
}

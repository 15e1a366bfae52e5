package netconn

import (
	"syscall"
	"time"

	"saltclusterd/nowait"

	"golang.org/x/sys/unix"
)

// MaxIOV is the most buffers one system call is given.
const MaxIOV = 32

// writeNow writes as much of bufs as a non-blocking socket takes in one go.
// EAGAIN comes with the number of bytes taken before.
func writeNow(fd int, bufs [][]byte) (n int, err error) {
	for {
		if len(bufs) == 1 && len(bufs[0]) <= nowait.MaxSend {
			n, err = nowait.Send(fd, bufs[0])
		} else if len(bufs) == 1 {
			n, err = syscall.Write(fd, bufs[0])
		} else {
			n, err = unix.Writev(fd, bufs[:min(len(bufs), MaxIOV)])
		}
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// Write writes as much of bufs as the socket takes in one go. EAGAIN comes with the number of bytes taken before. Wants
// Mu, and a connection that is not closed.
func (c *Conn) Write(bufs ...[]byte) (int, error) {
	if l := c.link.Load(); l != nil {
		return l.Write(bufs...)
	}
	return writeNow(c.fd, bufs)
}

// WriteWhenReady calls write now and whenever the socket has room again, until it returns true. It fails when the write
// deadline passes or the connection is cut.
func (c *Conn) WriteWhenReady(write func() (done bool)) error {
	if l := c.link.Load(); l != nil {
		return l.WriteWhenReady(write)
	}
	return c.socket().raw.Write(func(uintptr) bool { return write() })
}

// writeDeadline is what has the deadline for output.
func (c *Conn) writeDeadline() interface{ SetWriteDeadline(time.Time) error } {
	if l := c.link.Load(); l != nil {
		return l
	}
	return c.socket()
}

// SetWriteDeadline sets by when the socket must take output. It never takes back the deadline of Cut or Freeze. Wants
// Mu.
func (c *Conn) SetWriteDeadline(t time.Time) {
	w := c.writeDeadline()
	_ = w.SetWriteDeadline(t)
	if c.Reason() != ReasonNone || c.frozen {
		_ = w.SetWriteDeadline(longAgo)
	}
}

// SetUnreadTimeout ends the connection when the peer's host confirms nothing for so long of what was sent to it.
func (c *Conn) SetUnreadTimeout(d time.Duration) {
	_ = c.socket().raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d/time.Millisecond))
	})
}

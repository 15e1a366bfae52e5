package nowait

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Conn is a connection whose Read and Write are Recv and Send, where it has a descriptor. They wait, and end by
// deadlines and by Close, like those of the connection. Only one Read and one Write may be called at a time.
type Conn struct {
	net.Conn
	raw syscall.RawConn // nil: the connection has no descriptor

	in, out transfer
	// Bound once: a closure for each call would be allocated.
	recv, send func(fd uintptr) bool
}

// transfer is a Read or a Write that has begun.
type transfer struct {
	b   []byte
	n   int
	err error
}

// New returns a Conn that owns c.
func New(c net.Conn) *Conn {
	n := &Conn{Conn: c}
	if s, ok := c.(syscall.Conn); ok {
		n.raw, _ = s.SyscallConn()
	}
	n.recv, n.send = n.in.recv, n.out.send
	return n
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.raw == nil {
		return nil, errors.ErrUnsupported
	}
	return c.raw, nil
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if c.raw == nil || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.in = transfer{b: b}
	err := c.raw.Read(c.recv)
	n, failed := c.in.n, c.in.err
	c.in = transfer{}
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, c.opError("read", failed)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if c.raw == nil {
		return c.Conn.Write(b)
	}
	c.out = transfer{b: b}
	err := c.raw.Write(c.send)
	n, failed := c.out.n, c.out.err
	c.out = transfer{}
	if err == nil && failed != nil {
		err = c.opError("write", failed)
	}
	return n, err
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{
		Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(),
		Err: os.NewSyscallError(op, err),
	}
}

// recv reads what the socket holds; false: nothing.
func (t *transfer) recv(fd uintptr) bool {
	for {
		switch t.n, t.err = Recv(int(fd), t.b); t.err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			t.err = nil
			return false
		default:
			return true
		}
	}
}

// send writes what the socket takes; false: some is left.
func (t *transfer) send(fd uintptr) bool {
	for t.n < len(t.b) {
		n, err := Send(int(fd), t.b[t.n:min(len(t.b), t.n+MaxSend)])
		t.n += n
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			t.err = err
			return true
		}
	}
	return true
}

package front

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// FirstByte is that of a TLS handshake, and of no transport of Salt's.
const FirstByte = 0x16

// Config configures a Front. Zero fields take the default named.
type Config struct {
	// TLS is asked for each connection. nil, or one that returns nil: TLS is not served.
	TLS func() *tls.Config

	HandshakeTimeout time.Duration // for TLS alone. 10 s
	CloseTimeout     time.Duration // for a peer to read what the edge wrote before it ended. 5 s
}

// Front terminates TLS. See the package documentation.
type Front struct {
	cfg Config
	wg  sync.WaitGroup
}

// New returns a Front.
func New(cfg Config) *Front {
	if cfg.HandshakeTimeout <= 0 {
		cfg.HandshakeTimeout = 10 * time.Second
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 5 * time.Second
	}
	return &Front{cfg: cfg}
}

// config is nil when TLS is not served.
func (f *Front) config() *tls.Config {
	if f == nil || f.cfg.TLS == nil {
		return nil
	}
	return f.cfg.TLS()
}

// Serves tells whether TLS is served at present.
func (f *Front) Serves() bool { return f.config() != nil }

// Divert takes a connection over, from which begun was read, and returns the link that stands for it. When it fails the
// connection is the caller's still. Divert does not wait for the peer.
func (f *Front) Divert(conn net.Conn, begun []byte) (*Link, error) {
	cfg := f.config()
	if cfg == nil {
		return nil, ErrNotServed
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, pairBuffer)
	}
	l := &Link{front: f, peer: conn, edge: os.NewFile(uintptr(fds[0]), "minion"),
		local: os.NewFile(uintptr(fds[1]), "edge")}
	l.tls = tls.Server(&begunConn{Conn: conn, begun: append([]byte(nil), begun...)}, cfg)
	f.wg.Add(1)
	go l.serve()
	return l, nil
}

// Wait returns when all connections have ended, which those who hold links bring about.
func (f *Front) Wait() { f.wg.Wait() }

// pairBuffer is how many bytes, about, the kernel keeps on the way from the front to the edge, and back.
const pairBuffer = 32 << 10

// begunConn is a connection of which something was read.
type begunConn struct {
	net.Conn
	begun []byte
}

func (c *begunConn) Read(b []byte) (int, error) {
	if len(c.begun) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.begun)
	if c.begun = c.begun[n:]; len(c.begun) == 0 {
		c.begun = nil
	}
	return n, nil
}

// handshake shakes hands within the time there is.
func (l *Link) handshake() error {
	_ = l.peer.SetDeadline(time.Now().Add(l.front.cfg.HandshakeTimeout))
	if err := l.tls.HandshakeContext(context.Background()); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return net.ErrClosed
	}
	l.ready = true
	return l.peer.SetDeadline(time.Time{})
}

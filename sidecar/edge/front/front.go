package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// FirstByte is that of a TLS handshake, and of no transport of Salt's.
const FirstByte = 0x16

// Config configures a Front. Zero fields take the default named.
type Config struct {
	// TLS is asked for each connection. nil, or one that returns nil: TLS is not served.
	TLS func() *tls.Config

	Turns            *Turns        // fronts may share them. NewTurns(0)
	HandshakeTimeout time.Duration // for TLS alone. 10 s
	CloseTimeout     time.Duration // for a peer to read what the edge wrote before it ended. 5 s
}

// Front terminates TLS. See the package documentation.
type Front struct {
	cfg   Config
	wg    sync.WaitGroup
	taken atomic.Pointer[bounding] // the configuration that was asked for last
}

// New returns a Front.
func New(cfg Config) *Front {
	if cfg.HandshakeTimeout <= 0 {
		cfg.HandshakeTimeout = 10 * time.Second
	}
	if cfg.Turns == nil {
		cfg.Turns = NewTurns(0)
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

// bounding is a configuration and what became of it.
type bounding struct{ of, with *tls.Config }

// bounded returns a configuration with which a handshake costs little.
func (f *Front) bounded(cfg *tls.Config) *tls.Config {
	if last := f.taken.Load(); last != nil && last.of == cfg {
		return last.with
	}
	with := cfg.Clone()
	if verifies(cfg) {
		verifyHere(cfg, with)
	}
	with.DynamicRecordSizingDisabled = true // a minion can use a message only when all of it is there
	f.taken.Store(&bounding{cfg, with})
	return with
}

// Divert takes over a connection, which has a descriptor, and from which begun was read. It returns the link that
// stands for the connection. network is what its peer shares turns with. If Divert fails, the connection is still the
// caller's. Divert does not wait for the peer. Until the link is ready, conn has a deadline of Divert's.
func (f *Front) Divert(conn net.Conn, begun []byte, network netip.Addr) (*Link, error) {
	cfg := f.config()
	if cfg == nil {
		return nil, ErrNotServed
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("raw connection: %w", err)
	}
	l := &Link{front: f, peer: conn, verified: verifies(cfg), shaken: make(chan struct{})}
	l.out = output{peer: conn, raw: raw, wg: &f.wg, room: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithTimeout(context.Background(), f.cfg.HandshakeTimeout)
	l.begun = &begunConn{Conn: conn, link: l, begun: append([]byte(nil), begun...), network: network, room: maxHandshake}
	l.tls = tls.Server(l.begun, f.bounded(cfg))
	_ = conn.SetDeadline(time.Now().Add(f.cfg.HandshakeTimeout))
	f.wg.Add(1)
	go l.shakeHands()
	return l, nil
}

// Wait returns when all connections have ended, which those who hold links bring about.
func (f *Front) Wait() { f.wg.Wait() }

// maxHandshake is how many bytes a peer may say until hands are shaken. A minion with a chain of certificates says some
// 10 KiB; crypto/tls alone would keep a quarter of a MiB for each stranger.
const maxHandshake = 64 << 10

var errHandshake = errors.New("handshake too large")

// begunConn is a connection of which something was read. Until hands are shaken it bounds what is read, and has a turn
// from when the peer has said something until crypto/tls waits for more of it. Afterwards no Write waits.
type begunConn struct {
	net.Conn
	link    *Link
	begun   []byte
	network netip.Addr

	room   int  // for more of the handshake
	turned bool // it has a turn
	again  bool // it had one
	shaken atomic.Bool
}

func (c *begunConn) Read(b []byte) (n int, err error) {
	c.giveTurn() // a peer that says nothing keeps no turn
	if len(c.begun) > 0 {
		n = copy(b, c.begun)
		if c.begun = c.begun[n:]; len(c.begun) == 0 {
			c.begun = nil
		}
	} else if n, err = c.Conn.Read(b); c.shaken.Load() {
		return n, err
	}
	if c.room -= n; c.room < 0 {
		c.room = 0
		return 0, errHandshake
	}
	if n > 0 {
		if late := c.takeTurn(); late != nil {
			return 0, fmt.Errorf("wait for a turn: %w", late)
		}
	}
	return n, err
}

func (c *begunConn) Write(b []byte) (int, error) {
	if c.shaken.Load() {
		return c.link.out.write(b)
	}
	c.giveTurn() // a peer that reads nothing keeps no turn
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing. crypto/tls calls it when it announces the end, which then has CloseTimeout.
func (c *begunConn) SetWriteDeadline(time.Time) error { return nil }

func (c *begunConn) Close() error { return c.link.out.close() }

func (c *begunConn) takeTurn() error {
	err := c.link.front.cfg.Turns.takeTurn(c.link.ctx, c.network, c.again)
	c.turned, c.again = err == nil, true
	return err
}

func (c *begunConn) giveTurn() {
	if c.turned {
		c.turned = false
		c.link.front.cfg.Turns.giveBack()
	}
}

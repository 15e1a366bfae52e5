package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"saltclusterd/nowait"
)

// ClientOptions describe the socket a Client plays.
type ClientOptions struct {
	SocketType string // REQ, DEALER, SUB, ...
	Identity   string
	Limits     Limits
	// HandshakeTimeout bounds NewClient, 10 s if zero.
	HandshakeTimeout time.Duration
	// WriteTimeout bounds one write, 30 s if zero. A write that fails leaves
	// the connection of no use.
	WriteTimeout time.Duration
	// Heartbeat is the silence after which ReadMessage sends a PING (zero:
	// never), and HeartbeatTimeout the time it then waits for any sign of life
	// (three times Heartbeat if zero). Peers of ZMTP 3.0 are not pinged.
	Heartbeat, HeartbeatTimeout time.Duration
	// OnSilent, if not nil, is told when the peer falls silent, instead of an
	// ErrSilent, and when it is heard again; by the reader's goroutine. A peer
	// that only stood still continues where it was.
	OnSilent func(silent bool)
	// ReadBuffer is the bytes read at a time, 32 KiB if zero. It bounds no
	// message.
	ReadBuffer int
	// FirstGrab is the memory in bytes that a frame gets at once when only its
	// header has come, 4 KiB if zero: for peers that are trusted.
	FirstGrab int
}

// ErrSilent says that a peer answered no PING in time.
var ErrSilent = errors.New("peer is silent")

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// Client is one end of a ZMTP connection with blocking calls. Messages are
// raw: a REQ or DEALER caller sends and gets the empty delimiter itself.
//
// One goroutine may read while others write. PINGs are answered and sent
// inside ReadMessage, so a connection that is to live must have a reader.
type Client struct {
	conn net.Conn
	opts ClientOptions
	peer Metadata
	dec  Decoder
	hush bool   // OnSilent was told so
	in   []byte // what was read and not yet decoded, a part of space
	room []byte

	parts [][]byte        // of a message that is not complete
	stop  atomic.Bool     // Interrupt was called
	raw   syscall.RawConn // of conn; nil: it is not a socket
	got   received        // by take
	take  func(fd uintptr) bool

	wmu  sync.Mutex
	wbuf []byte
	left toSend // by give
	give func(fd uintptr) bool
}

// received is what a read of the socket came to.
type received struct {
	n   int
	err error
}

// toSend is what is left of a message that is being written.
type toSend struct {
	rest  []byte
	waits bool // the socket was full
	err   error
}

const (
	clientRoom     = 32 << 10 // read buffer unless the options say another
	clientKeepsOut = 64 << 10 // largest write buffer kept between messages
)

// NewClient shakes hands over c and returns when the peer's READY has been
// read. When it fails, c is closed.
func NewClient(ctx context.Context, c net.Conn, o ClientOptions) (*Client, error) {
	o = o.withDefaults()
	cl := newClient(c, o, o.ReadBuffer)
	cl.dec = NewDecoder(&cl.opts.Limits)
	if o.FirstGrab > 0 {
		cl.dec.SetFirstGrab(o.FirstGrab)
	}
	if err := cl.shakeHands(ctx); err != nil {
		_ = c.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("zmtp handshake: %w", err)
	}
	return cl, nil
}

// newClient wants options that are complete.
func newClient(c net.Conn, o ClientOptions, room int) *Client {
	cl := &Client{conn: c, opts: o, room: make([]byte, room)}
	switch s := c.(type) {
	case *net.TCPConn:
		cl.raw, _ = s.SyscallConn()
	case *net.UnixConn:
		cl.raw, _ = s.SyscallConn()
	}
	cl.take, cl.give = cl.recvSocket, cl.sendSocket
	return cl
}

func (o ClientOptions) withDefaults() ClientOptions {
	o.Limits = o.Limits.WithDefaults()
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = 10 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.ReadBuffer <= 0 {
		o.ReadBuffer = clientRoom
	}
	if o.HeartbeatTimeout <= 0 {
		o.HeartbeatTimeout = 3 * o.Heartbeat
	}
	return o
}

func (c *Client) shakeHands(ctx context.Context) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.opts.HandshakeTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(longAgo) })
	defer stop()
	hello := AppendReady(AppendGreeting(nil), c.opts.SocketType, c.opts.Identity)
	if _, err := c.conn.Write(hello); err != nil {
		return err
	}
	for {
		ev, err := c.nextEvent()
		if err != nil {
			return err
		}
		if ev.Kind != Command {
			continue
		}
		if err := c.readReady(ev.Body); err != nil {
			return err
		}
		if !stop() { // ctx ended: its deadline may have been set already
			return context.Cause(ctx)
		}
		return c.conn.SetDeadline(time.Time{})
	}
}

// readReady takes the first command of the peer, which must be READY.
func (c *Client) readReady(body []byte) error {
	name, data, err := ParseCommand(body)
	if err != nil {
		return err
	}
	switch string(name) {
	case CmdReady:
		if c.peer, err = ParseReady(data); err == nil {
			c.dec.SetReady()
		}
		return err
	case CmdError:
		pe, err := ParseError(data)
		if err != nil {
			return err
		}
		return pe
	}
	return ErrHandshake
}

// nextEvent returns the next event, reading when what has been read is used up.
func (c *Client) nextEvent() (Event, error) {
	for {
		if len(c.in) > 0 {
			ev, n, err := c.dec.Next(c.in)
			c.in = c.in[n:]
			if err != nil || ev.Kind != None {
				return ev, err
			}
		}
		if err := c.fillBuffer(); err != nil {
			return Event{}, err
		}
	}
}

// Peer is what the other side said of itself.
func (c *Client) Peer() Metadata { return c.peer }

// ReadMessage waits for the next message; its parts belong to the caller. Any
// error but a caller's own read deadline is final.
func (c *Client) ReadMessage() ([][]byte, error) {
	for {
		if c.stop.Load() {
			return nil, ErrInterrupted // what is in the buffer stays there
		}
		ev, err := c.nextEvent()
		if err != nil {
			return nil, fmt.Errorf("read message: %w", err)
		}
		if ev.Kind == Command {
			if err := c.handleCommand(ev.Body); err != nil {
				return nil, fmt.Errorf("read message: %w", err)
			}
			continue
		}
		body := ev.Body
		if !ev.Owned {
			body = append(make([]byte, 0, len(body)), body...)
		}
		if c.parts = append(c.parts, body); !ev.More {
			parts := c.parts
			c.parts = nil
			return parts, nil
		}
	}
}

// fillBuffer reads once. With heartbeats on, it asks the peer after a silence and
// gives up when not a byte comes back.
func (c *Client) fillBuffer() error {
	beat := c.opts.Heartbeat > 0 && c.dec.ready && c.dec.Minor() >= 1
	err := c.readConn(beat, c.opts.Heartbeat)
	c.noteHeard(err)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if c.stop.Load() {
		return ErrInterrupted
	}
	if !beat {
		return err
	}
	if err := c.Ping(); err != nil {
		return err
	}
	for {
		err = c.readConn(true, c.opts.HeartbeatTimeout)
		c.noteHeard(err)
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case c.stop.Load():
			return ErrInterrupted
		case c.opts.OnSilent == nil:
			return ErrSilent
		}
		if !c.hush {
			c.hush = true
			c.opts.OnSilent(true)
		}
	}
}

// noteHeard notes that something was read.
func (c *Client) noteHeard(err error) {
	if err == nil && c.hush {
		c.hush = false
		c.opts.OnSilent(false)
	}
}

func (c *Client) readConn(limited bool, wait time.Duration) error {
	if limited {
		if err := c.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		if c.stop.Load() { // it must not take back the deadline of Interrupt
			_ = c.conn.SetReadDeadline(longAgo)
		}
	}
	n, err := c.readOnce()
	if c.in = c.room[:n]; n > 0 {
		return nil // a lasting error shows again at the next read
	}
	return err
}

// readOnce waits for input and reads it.
func (c *Client) readOnce() (int, error) {
	if c.raw == nil {
		return c.conn.Read(c.room)
	}
	c.got = received{}
	if err := c.raw.Read(c.take); err != nil {
		return 0, err
	}
	if c.got.n == 0 && c.got.err == nil {
		return 0, io.EOF
	}
	return c.got.n, c.got.err
}

// recvSocket reads what the socket holds; false: nothing.
func (c *Client) recvSocket(fd uintptr) bool {
	for {
		n, err := nowait.Recv(int(fd), c.room)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case nil:
			c.got.n = n
		default:
			c.got.err = os.NewSyscallError("recv", err)
		}
		return true
	}
}

func (c *Client) handleCommand(body []byte) error {
	name, data, err := ParseCommand(body)
	if err != nil {
		return err
	}
	switch string(name) {
	case CmdPing:
		_, context, err := ParsePing(data)
		if err != nil {
			return err
		}
		return c.sendEncoded(func(b []byte) []byte { return AppendPong(b, context) })
	case CmdError:
		pe, err := ParseError(data)
		if err != nil {
			return err
		}
		return pe
	}
	return nil // PONG, and what later versions may add
}

// WriteMessage sends one message. It may be called by several goroutines.
func (c *Client) WriteMessage(parts ...[]byte) error {
	return c.sendEncoded(func(b []byte) []byte { return AppendMessage(b, parts...) })
}

// Subscribe asks a publisher for messages that begin with topic.
func (c *Client) Subscribe(topic []byte) error {
	return c.sendEncoded(func(b []byte) []byte {
		if c.dec.Minor() < 1 {
			return AppendSubscription(b, topic, true)
		}
		return AppendSubscribe(b, topic)
	})
}

// Ping sends a PING; the answer shows as a quiet success of ReadMessage. It carries no TTL: libzmq counts that from the
// PING on and is stopped by our frames only, so a subscriber, which sends nothing while its peer talks, would be cut.
func (c *Client) Ping() error {
	return c.sendEncoded(func(b []byte) []byte { return AppendPing(b, 0, nil) })
}

func (c *Client) sendEncoded(encode func([]byte) []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.wbuf = encode(c.wbuf[:0])
	err := c.writeBytes(c.wbuf)
	if cap(c.wbuf) > clientKeepsOut {
		c.wbuf = nil
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// writeBytes wants wmu. A short write nearly always finds room in the socket, and gets a deadline when it does not.
func (c *Client) writeBytes(b []byte) (err error) {
	if c.raw == nil || len(b) > nowait.MaxSend {
		if err := c.limitWrite(); err != nil {
			return err
		}
		if _, err := c.conn.Write(b); err != nil {
			return err
		}
		return c.conn.SetWriteDeadline(time.Time{})
	}
	c.left = toSend{rest: b}
	err = c.raw.Write(c.give)
	if err == nil {
		err = c.left.err
	}
	if err == nil && c.left.waits {
		err = c.conn.SetWriteDeadline(time.Time{})
	}
	c.left = toSend{}
	return err
}

func (c *Client) limitWrite() error {
	return c.conn.SetWriteDeadline(time.Now().Add(c.opts.WriteTimeout))
}

// sendSocket writes what the socket takes; false: some is left.
func (c *Client) sendSocket(fd uintptr) bool {
	l := &c.left
	for {
		n, err := nowait.Send(int(fd), l.rest)
		l.rest = l.rest[n:]
		switch {
		case err == syscall.EINTR, err == nil && len(l.rest) > 0:
			continue
		case err == syscall.EAGAIN:
			if !l.waits {
				l.waits = true
				l.err = c.limitWrite()
			}
			return l.err != nil
		case err != nil:
			l.err = os.NewSyscallError("send", err)
		}
		return true
	}
}

// Close closes the connection; a blocked call returns.
func (c *Client) Close() error { return c.conn.Close() }

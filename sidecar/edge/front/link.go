package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"saltclusterd/signal"

	"golang.org/x/sys/unix"
)

// ErrNotServed says that TLS has no configuration.
var ErrNotServed = errors.New("TLS is not served")

// ErrTLS is in errors of a peer that breaks the rules of TLS, or whose certificate is refused.
var ErrTLS = errors.New("TLS")

// Link is a connection with TLS as the edge has it.
type Link struct {
	front  *Front
	peer   net.Conn   // below TLS
	begun  *begunConn // between the two
	tls    *tls.Conn
	out    output          // what crypto/tls says to the peer
	ctx    context.Context // of the handshake
	cancel context.CancelFunc
	// verified says that the peer's certificate, if it has one, is.
	verified bool

	shaken   chan struct{} // closed when the handshake is over
	failure  error         // of the handshake, and
	identity Identity      // who the peer has proved to be: both before shaken is closed

	in   []byte // what is read at a time; the reader's
	kept int    // bytes of it that Read returns again

	until atomic.Int64 // the edge's write deadline in Unix nanoseconds; 0: none

	mu    sync.Mutex
	ready bool // hands were shaken
	ended bool // the edge has ended
}

// shakeHands is a goroutine of its own: its stack grows so much that the reader should not keep it.
func (l *Link) shakeHands() {
	defer l.front.wg.Done()
	defer close(l.shaken)
	defer l.cancel()
	defer l.begun.giveTurn()
	if err := l.tls.HandshakeContext(context.Background()); err != nil {
		l.failure = fmt.Errorf("%w handshake: %w", ErrTLS, err)
		return
	}
	if l.verified {
		l.identity = identityOf(l.tls.ConnectionState())
	}
	l.begun.shaken.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		_ = l.peer.SetWriteDeadline(time.Time{})
		l.ready = true
		signal.Send(l.out.room)
	}
}

// Shaken is closed when the handshake is over. Until then there is nothing to read.
func (l *Link) Shaken() <-chan struct{} { return l.shaken }

// Identity is who the peer has proved to be. It is known before Read returns anything.
func (l *Link) Identity() Identity {
	select {
	case <-l.shaken:
		return l.identity
	default:
		return Identity{}
	}
}

// End is called when the edge has ended. What it wrote before is sent, unless discard says that the peer gets nothing
// more. The connection is closed, now or when that was sent.
func (l *Link) End(discard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.cancel()
	switch {
	case l.ready && !discard:
		_ = l.peer.SetWriteDeadline(time.Now().Add(l.front.cfg.CloseTimeout))
		_ = l.tls.Close()
		return
	case !l.hasFailed(): // else the peer should read why
		_ = l.out.raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		})
	}
	_ = l.peer.Close()
}

// hasFailed tells whether the handshake has.
func (l *Link) hasFailed() bool {
	select {
	case <-l.shaken:
		return l.failure != nil
	default:
		return false
	}
}

// readRoom is how much is read at a time of what a peer says. An idle connection keeps it.
const readRoom = 4 << 10

// Read waits for what the peer says, until the connection's read deadline. What it returns is valid until the next
// call. The error is with ErrTLS one of the peer's.
func (l *Link) Read() ([]byte, error) {
	<-l.shaken
	if l.failure != nil {
		return nil, l.failure
	}
	if l.in == nil {
		l.in = make([]byte, readRoom)
	}
	if n := l.kept; n > 0 {
		l.kept = 0
		return l.in[:n], nil
	}
	n, err := l.tls.Read(l.in)
	var header tls.RecordHeaderError
	var op *net.OpError // what crypto/tls makes of an alert
	if errors.As(err, &header) || errors.As(err, &op) && (op.Op == "local error" || op.Op == "remote error") {
		err = fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return l.in[:n], err
}

// Unread makes Read return again the n bytes that it returned last.
func (l *Link) Unread(n int) { l.kept = n }

// recordRoom is as much as a TLS record has at most.
const recordRoom = 16 << 10

var recordRooms = sync.Pool{New: func() any { return new([recordRoom]byte) }}

// Write takes as much of bufs as there is room for, without waiting, and sends what it has taken. EAGAIN comes with the
// number of bytes taken before. Only one Write may be called at a time.
func (l *Link) Write(bufs ...[]byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return 0, net.ErrClosed
	case !l.ready:
		return 0, syscall.EAGAIN
	}
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	var small *[recordRoom]byte
	for rest := (buffers{list: bufs}); len(rest.list) > 0; {
		if full, err := l.out.full(total-n > recordRoom); err != nil {
			return n, err
		} else if full {
			return n, syscall.EAGAIN
		}
		record := rest.take(recordRoom)
		if len(record) < recordRoom && len(rest.list) > 0 { // small buffers share a record
			if small == nil {
				small = recordRooms.Get().(*[recordRoom]byte)
				defer recordRooms.Put(small)
			}
			record = append(small[:0], record...)
			for len(record) < recordRoom && len(rest.list) > 0 {
				record = append(record, rest.take(recordRoom-len(record))...)
			}
		}
		if _, err := l.tls.Write(record); err != nil {
			return n, err
		}
		n += len(record)
	}
	return n, nil
}

// buffers is what is left of a list of buffers.
type buffers struct {
	list [][]byte
	off  int // in the first one
}

// take takes up to n bytes of the first one.
func (b *buffers) take(n int) []byte {
	first := b.list[0][b.off:]
	if n < len(first) {
		b.off += n
		return first[:n]
	}
	b.list, b.off = b.list[1:], 0
	return first
}

// WriteWhenReady calls write now and whenever there is room again, until it returns true. It fails when the write
// deadline passes. A second one may be called before the first, which a failed takeover has stopped, has noticed that.
func (l *Link) WriteWhenReady(write func() (done bool)) error {
	for {
		var passed <-chan time.Time
		if until := l.until.Load(); until != 0 {
			left := time.Until(time.Unix(0, until))
			if left <= 0 {
				return os.ErrDeadlineExceeded
			}
			passed = time.After(left)
		}
		if write() {
			signal.Send(l.out.room) // the other one, if there is one, has nothing left either
			return nil
		}
		select {
		case <-l.out.room: // or the deadline is another
		case <-passed:
		}
	}
}

// SetWriteDeadline sets by when WriteWhenReady must be done; zero: never.
func (l *Link) SetWriteDeadline(t time.Time) error {
	until := int64(0)
	if !t.IsZero() {
		until = t.UnixNano()
	}
	l.until.Store(until)
	signal.Send(l.out.room)
	return nil
}

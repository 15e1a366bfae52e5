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

	"saltclusterd/nowait"
	"saltclusterd/signal"

	"golang.org/x/sys/unix"
)

// ErrNotServed says that TLS has no configuration.
var ErrNotServed = errors.New("TLS is not served")

// Link is a connection with TLS as the edge has it.
type Link struct {
	front  *Front
	peer   net.Conn   // below TLS
	begun  *begunConn // between the two
	tls    *tls.Conn
	out    output          // what crypto/tls says to the peer
	edge   *os.File        // the edge's end of the local stream
	local  *os.File        // the front's end
	ctx    context.Context // of the handshake
	cancel context.CancelFunc

	identity atomic.Pointer[Identity]
	failed   atomic.Pointer[error]

	until atomic.Int64 // the edge's write deadline in Unix nanoseconds; 0: none

	mu    sync.Mutex
	ready bool // hands were shaken
	ended bool // the edge has ended
}

// Edge is the edge's end of the local stream, which the edge closes before it calls End.
func (l *Link) Edge() *os.File { return l.edge }

// Identity is who the peer has proved to be. It is known before anything that the peer says reaches the edge.
func (l *Link) Identity() Identity {
	if i := l.identity.Load(); i != nil {
		return *i
	}
	return Identity{}
}

// Err is why the connection has failed; nil when it was closed. It is known before the edge reads the end.
func (l *Link) Err() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// End is called when the edge has closed its end. What it wrote before is sent, unless discard says that the peer gets
// nothing more.
func (l *Link) End(discard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.cancel()
	if l.ready && !discard {
		_ = l.peer.SetWriteDeadline(time.Now().Add(l.front.cfg.CloseTimeout))
		_ = l.tls.Close()
		return
	}
	nowait.Control(l.peer, func(fd int) {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
	_ = l.peer.Close()
}

// SetUnreadTimeout ends the connection when the peer's host confirms nothing for so long of what was sent to it.
func (l *Link) SetUnreadTimeout(d time.Duration) {
	nowait.Control(l.peer, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d/time.Millisecond))
	})
}

// serve shakes hands and starts what reads, in a goroutine whose stack has not grown for a handshake.
func (l *Link) serve() {
	defer l.front.wg.Done()
	err := l.handshake()
	if err != nil {
		l.failed.Store(&err)
		_ = l.local.Close()
		_ = l.peer.Close()
		return
	}
	i := identityOf(l.tls.ConnectionState())
	l.identity.Store(&i)
	l.front.wg.Add(1)
	go l.sendRequests()
}

// sendRequests carries what the peer says to the edge.
func (l *Link) sendRequests() {
	defer l.front.wg.Done()
	defer l.local.Close()
	room := make([]byte, upRoom)
	for {
		n, err := l.tls.Read(room)
		if n > 0 {
			if _, failed := l.local.Write(room[:n]); failed != nil {
				return // the edge has ended
			}
		}
		if err != nil {
			l.note(err)
			return
		}
	}
}

// note keeps an error of TLS: one of the network only ends the connection.
func (l *Link) note(err error) {
	var header tls.RecordHeaderError
	var op *net.OpError // what crypto/tls makes of an alert
	if errors.As(err, &header) || errors.As(err, &op) && (op.Op == "local error" || op.Op == "remote error") {
		err = fmt.Errorf("TLS: %w", err)
		l.failed.Store(&err)
	}
}

// upRoom is how much is read at a time of what a peer says. An idle connection keeps it.
const upRoom = 4 << 10

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
	var small *[recordRoom]byte
	for rest := (buffers{list: bufs}); len(rest.list) > 0; {
		if full, err := l.out.full(); err != nil {
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
// deadline passes. Only one may be called at a time.
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

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
	edge   *os.File        // the edge's end of the local stream
	local  *os.File        // the front's end
	ctx    context.Context // of the handshake
	cancel context.CancelFunc

	identity atomic.Pointer[Identity]
	failed   atomic.Pointer[error]

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

// serve shakes hands and starts what carries the bytes, in goroutines whose stacks have not grown for a handshake.
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
	l.front.wg.Add(2)
	go l.sendRequests()
	go l.sendReplies()
}

// sendRequests carries what the peer says to the edge.
func (l *Link) sendRequests() {
	defer l.front.wg.Done()
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
			nowait.Control(l.local, func(fd int) { _ = unix.Shutdown(fd, unix.SHUT_WR) })
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

// downRoom is how much is read at a time of what the edge says: as much as a TLS record has at most.
const downRoom = 16 << 10

var downRooms = sync.Pool{New: func() any { return new([downRoom]byte) }}

// sendReplies carries what the edge says to the peer, and closes the connection at the end of either.
func (l *Link) sendReplies() {
	defer l.front.wg.Done()
	defer l.local.Close()
	defer l.tls.Close()
	raw, err := l.local.SyscallConn()
	if err != nil {
		return
	}
	for {
		room, n, err := receive(raw)
		if n > 0 {
			_, err = l.tls.Write(room[:n])
		}
		if room != nil {
			downRooms.Put(room)
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// receive waits for bytes and takes a buffer when there are some. n is 0 at the end.
func receive(raw syscall.RawConn) (room *[downRoom]byte, n int, err error) {
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		room = downRooms.Get().(*[downRoom]byte)
		for {
			if n, failed = nowait.Recv(int(fd), room[:]); failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			downRooms.Put(room)
			return false
		}
		return true
	})
	if err != nil {
		return nil, 0, err
	}
	return room, max(n, 0), failed
}

package edge

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/zmtp"
)

// readRoom is the size of a pooled read buffer. A read that fills it is
// followed by another at once.
const readRoom = 64 << 10

var readRooms = sync.Pool{New: func() any { return new([readRoom]byte) }}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// link is one connection as both edges know it: a descriptor, a decoder and
// the way to end it. Its owner is the goroutine that runs follow.
type link struct {
	sock    atomic.Pointer[socket] // nil: taken over, not known to the poller yet
	enroll  sync.Once              // makes sock of a connection taken over
	frost   *frost                 // its edge's
	stance  stance                 // the reader's
	fd      int                    // valid while mu is held and closed is false
	remote  netip.AddrPort         // the peer; until it is introduced, the load balancer
	herald  *herald                // nil: no load balancer introduces it, or one has; the reader's
	counted netip.Addr             // the address it is counted under
	dec     zmtp.Decoder
	met     bool          // READY was exchanged; the reader's
	heard   atomic.Int64  // clock at the last bytes read
	cause   atomic.Uint32 // the Reason it was cut for, 0 while it lives
	done    chan struct{} // closed when cut

	mu     sync.Mutex // output: held for non-blocking work only
	closed bool       // guarded by mu
	frozen bool       // output stands still for a handover; guarded by mu
	handed bool       // another process also has the descriptor; guarded by mu
}

func (l *link) init(tcp *net.TCPConn, remote netip.AddrPort, h *herald, limits *zmtp.Limits, f *frost) error {
	l.herald = h
	if h == nil {
		l.counted = remote.Addr()
	}
	s, err := newSocket(tcp)
	if err != nil {
		return err
	}
	l.sock.Store(s)
	l.remote, l.frost = remote, f
	l.dec = zmtp.NewDecoder(limits)
	l.done = make(chan struct{})
	l.heard.Store(clock())
	return s.raw.Control(func(fd uintptr) { l.fd = int(fd) })
}

// cut ends the connection soon; the first reason counts. It may be called
// from everywhere, with or without mu.
func (l *link) cut(r Reason) {
	if !l.cause.CompareAndSwap(0, uint32(r)) {
		return
	}
	close(l.done)
	if s := l.sock.Load(); s != nil {
		_ = s.SetDeadline(longAgo) // wakes whoever waits on the descriptor
	}
}

// reason is what the connection was cut for, reasonNone while it lives.
func (l *link) reason() Reason { return Reason(l.cause.Load()) }

// close releases the descriptor. What a misbehaving peer has not read is
// discarded, so that the kernel does not keep it.
func (l *link) close() {
	sock := l.socket()
	l.mu.Lock()
	if !l.handed && !l.reason().ours() {
		_ = unix.SetsockoptLinger(l.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	l.closed = true
	l.mu.Unlock()
	_ = sock.Close()
}

// setReadDeadline sets the socket's, except that it never takes back the
// deadline by which cut ends a connection. A frost needs none: readers look for it.
func (l *link) setReadDeadline(t time.Time) {
	s := l.socket()
	_ = s.SetReadDeadline(t)
	if l.reason() != reasonNone {
		_ = s.SetReadDeadline(longAgo)
	}
}

// follow reads until hear reports an error, the connection ends, is cut, or
// its read deadline passes.
//
// All reading is done inside one RawConn.Read, and after a short read the
// descriptor is not tried again until the poller reports it: this saves the
// read that would only say EAGAIN. It cannot miss data, because a report that
// comes in between is kept. It can miss an end that was already there at the
// short read; endReached is for that.
func (l *link) follow(hear func([]byte) error) error {
	var failure error
	err := l.socket().raw.Read(func(fd uintptr) bool {
		if !l.stance.rouse(l.frost) {
			failure = errFrozen
			return true
		}
		var again bool
		if again, failure = l.readOnce(int(fd), hear); again {
			l.stance.rest(l.frost)
		}
		return !again
	})
	l.stance.rouse(l.frost) // whose wait was ended by something else than input
	if failure != nil {
		return failure
	}
	return err
}

// readOnce reads what there is. again asks to be called when there is more.
func (l *link) readOnce(fd int, hear func([]byte) error) (again bool, err error) {
	room := readRooms.Get().(*[readRoom]byte)
	defer readRooms.Put(room)
	for {
		if l.reason() != reasonNone { // one who always has more never waits
			return false, errCut
		}
		n, err := zmtp.Recv(fd, room[:])
		switch {
		case err == syscall.EAGAIN:
			return true, nil
		case err == syscall.EINTR:
			continue
		case err != nil:
			return false, os.NewSyscallError("recv", err)
		case n == 0:
			return false, io.EOF
		}
		l.heard.Store(clock())
		if err := hear(room[:n]); err != nil {
			return false, err
		}
		if n < readRoom || l.frost.on() {
			return true, nil
		}
	}
}

// endReached tells whether the connection has ended and nothing is left to
// read.
func (l *link) endReached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.frozen {
		return false
	}
	var b [1]byte
	n, _, err := syscall.Recvfrom(l.fd, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}

// greet sends greeting and READY. A fresh socket has room for them.
func (l *link) greet(hello []byte) error {
	_, err := zmtp.Send(l.fd, hello)
	return err
}

// meet takes the first command of a peer, which must be a READY from one of
// the given socket types. A peer of another type is told so.
func (l *link) meet(body []byte, types ...string) error {
	name, data, err := zmtp.ParseCommand(body)
	if err != nil {
		return err
	}
	if string(name) != zmtp.CmdReady {
		return zmtp.ErrHandshake
	}
	peer, err := zmtp.ParseReady(data)
	if err != nil {
		return err
	}
	if !slices.Contains(types, peer.SocketType) {
		_, _ = syscall.Write(l.fd, zmtp.AppendError(nil, "Invalid socket type"))
		return &cutError{ReasonProtocol, "wrong socket type"}
	}
	l.dec.SetReady()
	l.met = true
	l.setReadDeadline(time.Time{})
	return nil
}

// ended turns what stopped the reader into the reason that counts: an
// earlier cut wins over its own consequences.
func (l *link) ended(err error) Reason {
	if r := l.reason(); r != reasonNone {
		return r
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !l.met {
		return ReasonHandshake
	}
	return reasonOf(err)
}

// begun is the zero of clock.
var begun = time.Now()

// clock is a monotonic time in nanoseconds.
func clock() int64 { return int64(time.Since(begun)) }

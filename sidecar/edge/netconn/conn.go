package netconn

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"saltclusterd/nowait"
	"saltclusterd/sidecar/edge/front"

	"golang.org/x/sys/unix"
)

// readRoom is the size of a pooled read buffer. A read that fills it is
// followed by another at once.
const readRoom = 64 << 10

var readRooms = sync.Pool{New: func() any { return new([readRoom]byte) }}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// Conn is one connection as every transport has it: a descriptor, the way to
// read and to end it, and who is at the other end. Its owner is the goroutine
// that runs Follow.
type Conn struct {
	// Mu guards output. It is held for non-blocking work only.
	Mu     sync.Mutex
	closed bool // guarded by Mu
	frozen bool // output stands still for a handover; guarded by Mu
	handed bool // another process also has the descriptor; guarded by Mu

	sock      atomic.Pointer[socket] // nil: taken over, not known to the poller yet
	enroll    sync.Once              // makes sock of a connection taken over
	listener  *Listener              // that has let it in
	freezer   *Freezer               // the listener's
	reader    ReaderState
	fd        int                        // valid while Mu is held and closed is false
	remote    netip.AddrPort             // the peer; until a load balancer has named it, the load balancer
	header    *proxyHeader               // nil: no load balancer names the peer, or one has; the reader's
	link      atomic.Pointer[front.Link] // nil: without TLS
	handshake time.Duration              // until TLS is ready: the time for what comes next; the reader's
	counted   netip.Addr                 // the address it is counted under
	ready     bool                       // hands were shaken; the reader's
	heard     atomic.Int64               // clock at the last bytes read
	cause     atomic.Uint32              // the Reason it was cut for, 0 while it lives
	done      chan struct{}              // closed when cut
	farewell  func() []byte              // what is said last; guarded by Mu
}

// Init makes c the connection that was let in.
func (c *Conn) Init(a Accepted) error {
	c.header, c.counted = a.header, a.counted()
	s, err := newSocket(a.tcp)
	if err != nil {
		return err
	}
	c.sock.Store(s)
	c.remote, c.listener, c.freezer = a.remote, a.listener, a.listener.cfg.Freezer
	c.done = make(chan struct{})
	c.heard.Store(Clock())
	return s.raw.Control(func(fd uintptr) { c.fd = int(fd) })
}

// Leave gives the connection's place back. Its reader has ended.
func (c *Conn) Leave() {
	c.listener.Leave(c.counted)
	c.reader.still.Store(true) // for good
	c.freezer.Notify()
}

// Remote returns the peer's address.
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// Descriptor returns the socket's. Wants Mu, and a connection that is not closed.
func (c *Conn) Descriptor() int { return c.fd }

// Done is closed when the connection is cut.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Heard returns the clock at the last bytes read.
func (c *Conn) Heard() int64 { return c.heard.Load() }

// Closed tells whether the descriptor was given up. Wants Mu.
func (c *Conn) Closed() bool { return c.closed }

// Frozen tells whether output stands still. Wants Mu.
func (c *Conn) Frozen() bool { return c.frozen }

// Handed tells whether another process also has the connection. Wants Mu.
func (c *Conn) Handed() bool { return c.handed }

// FreezeBegun is closed when the next freeze begins.
func (c *Conn) FreezeBegun() <-chan struct{} { return c.freezer.Begun() }

// Notify says that a goroutine of the connection has ended.
func (c *Conn) Notify() { c.freezer.Notify() }

// Ready tells whether hands were shaken.
func (c *Conn) Ready() bool { return c.ready }

// SetReady says that hands were shaken, and ends the read deadline.
func (c *Conn) SetReady() {
	c.ready = true
	c.SetReadDeadline(time.Time{})
}

// Cut ends the connection soon; the first reason counts. It may be called
// from everywhere, with or without Mu.
func (c *Conn) Cut(r Reason) {
	if !c.cause.CompareAndSwap(0, uint32(r)) {
		return
	}
	close(c.done)
	s, l := c.sock.Load(), c.link.Load()
	switch { // wakes whoever waits on the descriptor
	case s == nil:
	case l == nil:
		_ = s.SetDeadline(longAgo)
	default: // which sends what it has taken
		_ = s.SetReadDeadline(longAgo)
		_ = l.SetWriteDeadline(longAgo)
	}
}

// Reason is what the connection was cut for, ReasonNone while it lives.
func (c *Conn) Reason() Reason { return Reason(c.cause.Load()) }

// Close releases the descriptor. What a misbehaving peer has not read is
// discarded, so that the kernel does not keep it.
func (c *Conn) Close() {
	sock := c.socket()
	c.Mu.Lock()
	c.sayFarewell()
	if !c.handed && !c.Reason().ours() && !c.IsSecured() {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.closed = true
	c.Mu.Unlock()
	c.release(sock, !c.Reason().ours())
}

// SetFarewell sets what gives the last bytes for the peer, which the socket takes at once or not at all. It is called
// with Mu when the connection is closed and no other process has it.
func (c *Conn) SetFarewell(f func() []byte) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.farewell = f
}

// sayFarewell wants Mu.
func (c *Conn) sayFarewell() {
	if c.farewell == nil || c.handed || c.closed {
		return
	}
	if last := c.farewell(); len(last) > 0 {
		_, _ = c.Write(last)
	}
}

// SetReadDeadline sets the socket's, except that it never takes back the
// deadline by which Cut ends a connection. A freeze needs none: readers look for it.
func (c *Conn) SetReadDeadline(t time.Time) {
	s := c.socket()
	_ = s.SetReadDeadline(t)
	if c.Reason() != ReasonNone {
		_ = s.SetReadDeadline(longAgo)
	}
}

// StopReading ends the reader's turn.
func (c *Conn) StopReading() { _ = c.socket().SetReadDeadline(longAgo) }

// Follow reads until handle reports an error, the connection ends, is cut, or
// its read deadline passes.
//
// All reading is done inside one RawConn.Read, and after a short read the
// descriptor is not tried again until the poller reports it: this saves the
// read that would only say EAGAIN. It cannot miss data, because a report that
// comes in between is kept. It can miss an end that was already there at the
// short read; EndReached is for that.
func (c *Conn) Follow(handle func([]byte) error) error {
	for {
		if err := c.follow(handle); err != errDiverted {
			return err
		}
	}
}

// follow is Follow until the connection is diverted.
func (c *Conn) follow(handle func([]byte) error) error {
	if l := c.link.Load(); l != nil {
		return c.followLink(l, handle)
	}
	var failure error
	err := c.socket().raw.Read(func(fd uintptr) bool {
		if !c.reader.resume(c.freezer) {
			failure = ErrFrozen
			return true
		}
		var again bool
		if again, failure = c.readOnce(int(fd), handle); again {
			c.reader.idle(c.freezer)
		}
		return !again
	})
	c.reader.resume(c.freezer) // whose wait was ended by something else than input
	if failure != nil {
		return failure
	}
	return err
}

// readOnce reads what there is. again asks to be called when there is more.
func (c *Conn) readOnce(fd int, handle func([]byte) error) (again bool, err error) {
	room := readRooms.Get().(*[readRoom]byte)
	defer readRooms.Put(room)
	for {
		if c.Reason() != ReasonNone { // one who always has more never waits
			return false, ErrCut
		}
		n, err := nowait.Recv(fd, room[:])
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
		c.heard.Store(Clock())
		if err := handle(room[:n]); err != nil {
			return false, err
		}
		if n < readRoom || c.freezer.On() {
			return true, nil
		}
	}
}

// EndReached tells whether the connection has ended and nothing is left to
// read.
func (c *Conn) EndReached() bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.closed || c.frozen {
		return false
	}
	var b [1]byte
	n, _, err := syscall.Recvfrom(c.fd, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}

// Ended turns what stopped the reader into the reason that counts: an
// earlier cut wins over its own consequences.
func (c *Conn) Ended(err error) Reason {
	if r := c.Reason(); r != ReasonNone {
		return r
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.ready {
		return ReasonHandshake
	}
	return reasonOf(err)
}

// begun is the zero of Clock.
var begun = time.Now()

// Clock is a monotonic time in nanoseconds.
func Clock() int64 { return int64(time.Since(begun)) }

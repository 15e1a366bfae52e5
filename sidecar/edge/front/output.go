package front

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"saltclusterd/nowait"
	"saltclusterd/signal"

	"golang.org/x/sys/unix"
)

// outputRoom is how many bytes may wait for the peer's socket before the edge has to wait. crypto/tls adds at most one
// record to them. A peer that makes crypto/tls answer again and again, and reads nothing, is cut at maxOutput.
const (
	outputRoom = 32 << 10
	maxOutput  = 128 << 10
)

var errOutput = errors.New("TLS: the peer reads no answers")

// output sends what crypto/tls writes. It keeps bytes that the socket does not take at once, and a goroutine sends
// them, so that no writer ever waits.
type output struct {
	peer net.Conn
	raw  syscall.RawConn
	wg   *sync.WaitGroup // of the goroutine
	room chan struct{}   // holds one: the edge may write again, or learns why it cannot

	mu      sync.Mutex
	more    bool   // the edge writes another record at once
	left    []byte // what the socket has not taken; nil: nothing
	closing bool   // the connection is closed as soon as nothing is left
	err     error
}

// full tells whether the edge has to wait before it writes a record, and why it must not write at all. more says that
// it writes another one at once: the socket may take both as one packet.
func (o *output) full(more bool) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.more = more
	return len(o.left) >= outputRoom, o.err
}

// write sends all of b, now or later.
func (o *output) write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := b
	if o.left == nil && o.err == nil {
		send := nowait.Send
		if o.more {
			send = nowait.SendPart
		}
		_ = o.raw.Control(func(fd uintptr) { rest = o.send(int(fd), b, send) })
	}
	switch {
	case o.err != nil:
		return 0, o.err
	case len(rest) == 0:
		return len(b), nil
	case len(o.left)+len(rest) > maxOutput:
		o.err = errOutput
		return 0, o.err
	case o.left == nil:
		o.wg.Add(1)
		go o.sendLeft()
	}
	o.left = append(o.left, rest...)
	return len(b), nil
}

// send returns what the socket did not take. Wants mu.
func (o *output) send(fd int, b []byte, send func(fd int, b []byte) (int, error)) []byte {
	for len(b) > 0 {
		n, err := send(fd, b[:min(len(b), nowait.MaxSend)])
		b = b[n:]
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			return b
		default:
			o.err = fmt.Errorf("send to the peer: %w", err)
			return b
		}
	}
	return nil
}

// sendLeft sends what is left, and ends when nothing is.
func (o *output) sendLeft() {
	defer o.wg.Done()
	defer signal.Send(o.room)
	err := o.raw.Write(func(fd uintptr) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		rest := o.send(int(fd), o.left, nowait.Send)
		o.left = o.left[:copy(o.left, rest)]
		if len(o.left) == 0 {
			o.left = nil // before another can be started
		}
		return o.left == nil || o.err != nil
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err // closed, or not read within CloseTimeout
	}
	if o.closing && (o.left == nil || o.err != nil) {
		_ = o.peer.Close()
	}
}

// close closes the connection when all was sent.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	if o.left == nil || o.err != nil {
		return o.peer.Close()
	}
	return nil
}

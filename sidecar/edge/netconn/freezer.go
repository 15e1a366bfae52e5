package netconn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/signal"
)

// ErrNotFrozen says that something is done to a standing edge which only a
// frozen one allows, or the other way round.
var ErrNotFrozen = errors.New("edge: not in the right state for a handover")

// errHanded ends a reader whose connection another process has taken over.
var errHanded = errors.New("connection was handed over")

// Freezer makes the connections of an edge stand still, so that they can be
// written down. A reader that waits for input stands still already, and looks
// for a freeze before it reads again: of thousands only those which are at work
// have to be waited for, and none is woken. Then output stops. Either all of
// it thaws, or all of it was handed over.
type Freezer struct {
	state atomic.Uint32 // flowing, freezing or gone
	moved chan struct{} // holds one: a reader stands still, or a writer or reader has ended

	mu    sync.Mutex
	start chan struct{} // closed when it begins
	end   chan struct{} // closed when it is over
}

// ReaderState is what a reader or acceptor is doing.
type ReaderState struct{ still atomic.Bool }

// idle says that nothing will be touched before resume.
func (s *ReaderState) idle(f *Freezer) {
	s.still.Store(true)
	if f.On() {
		f.Notify()
	}
}

// resume ends that. false: there is a freeze, and it may count on it.
func (s *ReaderState) resume(f *Freezer) bool {
	s.still.Store(false) // before the look at the freeze, which begins before it looks at this
	return !f.On()
}

const (
	flowing uint32 = iota
	freezing
	gone
)

// NewFreezer returns a Freezer whose connections flow.
func NewFreezer() *Freezer {
	return &Freezer{moved: make(chan struct{}, 1), start: make(chan struct{}), end: make(chan struct{})}
}

// On tells whether readers must stop.
func (f *Freezer) On() bool { return f.state.Load() != flowing }

// Begun is closed when the next freeze begins.
func (f *Freezer) Begun() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start
}

// Begin starts a freeze.
func (f *Freezer) Begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.CompareAndSwap(flowing, freezing) {
		return ErrNotFrozen
	}
	close(f.start)
	return nil
}

// Freezing tells whether there is a freeze, and nothing was handed over yet.
func (f *Freezer) Freezing() bool { return f.state.Load() == freezing }

// Finish lets the readers and acceptors that have parked continue, or end when
// all was handed over.
func (f *Freezer) Finish(handed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.end
	if handed {
		f.state.Store(gone)
	} else {
		f.start, f.end = make(chan struct{}), make(chan struct{})
		f.state.Store(flowing)
	}
	close(end)
}

// Notify makes Await look again.
func (f *Freezer) Notify() { signal.Send(f.moved) }

// park waits for the end of the freeze, if there is one, and returns errHanded
// when everything was handed over. Also who is about to close a descriptor
// parks: its number must stay what it is until the descriptors are sent.
func (f *Freezer) park(s *ReaderState) error {
	f.mu.Lock()
	end, standing := f.end, f.state.Load() == freezing
	f.mu.Unlock()
	if standing {
		s.idle(f)
		<-end
		s.resume(f)
	}
	if f.state.Load() == gone {
		return errHanded
	}
	return nil
}

// Await waits until ok; it is asked again whenever something has moved.
func (f *Freezer) Await(ctx context.Context, what string, ok func() bool) error {
	for !ok() {
		select {
		case <-f.moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to pause: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// holder is a connection, or what embeds one.
type holder interface{ readerState() *ReaderState }

func (c *Conn) readerState() *ReaderState { return &c.reader }

// AwaitReaders waits until the readers of all of them stand still.
func AwaitReaders[C holder](ctx context.Context, f *Freezer, what string, all []C) error {
	return f.Await(ctx, what, func() bool {
		for len(all) > 0 && all[len(all)-1].readerState().still.Load() {
			all = all[:len(all)-1]
		}
		return len(all) == 0
	})
}

// StoppedByFreeze tells whether err, which ended a reader's turn, is the doing
// of a freeze, which may be over already.
func (c *Conn) StoppedByFreeze(err error) bool {
	return c.Reason() == ReasonNone && (errors.Is(err, ErrFrozen) || errors.Is(err, os.ErrDeadlineExceeded) &&
		c.freezer.On())
}

// ErrFrozen leaves a wait for input, or for a place, when there is a freeze.
var ErrFrozen = errors.New("edge is frozen")

// Park stands still until the freeze is over, and continues with the deadline
// that a connection in its state has.
func (c *Conn) Park(handshake time.Duration) error {
	if err := c.freezer.park(&c.reader); err != nil {
		return err
	}
	c.LimitHandshake(handshake)
	return nil
}

// HandedOver is asked before a connection that has ended is closed. It waits
// for the end of a freeze; when another process has the connection, it closes
// our descriptor.
func (c *Conn) HandedOver() bool {
	if c.freezer.park(&c.reader) == nil {
		return false
	}
	c.Mu.Lock()
	c.sayFarewell()
	c.closed = true
	c.Mu.Unlock()
	c.release(c.socket(), false)
	return true
}

// LimitHandshake sets by when a connection must be ready.
func (c *Conn) LimitHandshake(handshake time.Duration) {
	if c.ready {
		c.SetReadDeadline(time.Time{})
	} else {
		c.SetReadDeadline(time.Now().Add(handshake))
	}
}

// FreezeOutput stops output. The writer of a full socket, which busy tells of,
// ends. Wants Mu.
func (c *Conn) FreezeOutput(busy bool) {
	c.frozen = true
	if busy {
		_ = c.writeDeadline().SetWriteDeadline(longAgo)
	}
}

// ThawOutput lets output continue, and tells whether it stood; the caller
// starts a writer if one is needed. Wants Mu.
func (c *Conn) ThawOutput() (stood bool) {
	stood = c.frozen
	c.frozen, c.handed = false, false
	if c.Reason() == ReasonNone {
		_ = c.writeDeadline().SetWriteDeadline(time.Time{})
		if c.Reason() != ReasonNone {
			_ = c.writeDeadline().SetWriteDeadline(longAgo)
		}
	}
	return stood
}

// OutputFrozen tells whether a writer was ended by the freeze.
func (c *Conn) OutputFrozen() bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.frozen
}

// wake makes a resting reader see that its connection was handed over.
func (c *Conn) wake() { _ = c.socket().SetReadDeadline(longAgo) }

// wokenAtOnce is how many connections are woken before a pause, so that the new process, which has as much to do, has
// the processors.
const wokenAtOnce = 32

// Wake wakes readers of connections that were handed over; they close their descriptors.
func Wake[C interface{ wake() }](all []C) {
	for i, c := range all {
		if c.wake(); i%wokenAtOnce == wokenAtOnce-1 {
			time.Sleep(time.Millisecond)
		}
	}
}

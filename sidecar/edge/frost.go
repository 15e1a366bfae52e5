package edge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNotFrozen says that something is done to a standing edge which only a
// frozen one allows, or the other way round.
var ErrNotFrozen = errors.New("edge: not in the right state for a handover")

// errHanded ends a reader whose connection another process has taken over.
var errHanded = errors.New("connection was handed over")

// frost makes the connections of an edge stand still, so that they can be
// written down. A reader that waits for input stands still already, and looks
// for a frost before it reads again: of thousands only those which are at work
// have to be waited for, and none is woken. Then output stops. Either all of
// it thaws, or all of it was handed over.
type frost struct {
	state atomic.Uint32 // flowing, freezing or gone
	moved chan struct{} // holds one: a reader stands still, or a writer or reader has ended

	mu    sync.Mutex
	start chan struct{} // closed when it begins
	end   chan struct{} // closed when it is over
}

// stance is what a reader or acceptor is doing.
type stance struct{ still atomic.Bool }

// rest says that nothing will be touched before rouse.
func (s *stance) rest(f *frost) {
	s.still.Store(true)
	if f.on() {
		f.stir()
	}
}

// rouse ends a rest. false: there is a frost, and it may count on the rest.
func (s *stance) rouse(f *frost) bool {
	s.still.Store(false) // before the look at the frost, which begins before it looks at this
	return !f.on()
}

const (
	flowing uint32 = iota
	freezing
	gone
)

func newFrost() *frost {
	return &frost{moved: make(chan struct{}, 1), start: make(chan struct{}), end: make(chan struct{})}
}

// on tells whether readers must stop.
func (f *frost) on() bool { return f.state.Load() != flowing }

// begun is closed when the next frost begins.
func (f *frost) begun() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start
}

func (f *frost) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.CompareAndSwap(flowing, freezing) {
		return ErrNotFrozen
	}
	close(f.start)
	return nil
}

// finish lets the readers and acceptors that have parked continue, or end when
// all was handed over.
func (f *frost) finish(handed bool) {
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

// stir makes await look again.
func (f *frost) stir() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// park waits for the end of the frost, if there is one, and returns errHanded
// when everything was handed over. Also who is about to close a descriptor
// parks: its number must stay what it is until the descriptors are sent.
func (f *frost) park(s *stance) error {
	f.mu.Lock()
	end, standing := f.end, f.state.Load() == freezing
	f.mu.Unlock()
	if standing {
		s.rest(f)
		<-end
		s.rouse(f)
	}
	if f.state.Load() == gone {
		return errHanded
	}
	return nil
}

// await waits until ok; it is asked again whenever something has moved.
func (f *frost) await(ctx context.Context, what string, ok func() bool) error {
	for !ok() {
		select {
		case <-f.moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to stand still: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// standing is a connection, whose reader has a stance.
type standing interface{ standsAt() *stance }

func (l *link) standsAt() *stance { return &l.stance }

// stand waits until the readers of all of them stand still.
func stand[C standing](ctx context.Context, f *frost, what string, all []C) error {
	return f.await(ctx, what, func() bool {
		for len(all) > 0 && all[len(all)-1].standsAt().still.Load() {
			all = all[:len(all)-1]
		}
		return len(all) == 0
	})
}

// frosted tells whether err, which ended a reader's turn, is the doing of a
// frost, which may be over already.
func (l *link) frosted(err error) bool {
	return l.reason() == reasonNone && (errors.Is(err, errFrozen) || errors.Is(err, os.ErrDeadlineExceeded) &&
		l.frost.on())
}

// errFrozen leaves a wait for input, or for a place, when there is a frost.
var errFrozen = errors.New("edge is frozen")

// park stands still until the frost is over, and continues with the deadline
// that a connection in its state has.
func (l *link) park(handshake time.Duration) error {
	if err := l.frost.park(&l.stance); err != nil {
		return err
	}
	l.setReadDeadline(l.readDeadline(handshake))
	return nil
}

// readDeadline is by when a connection must have said something.
func (l *link) readDeadline(handshake time.Duration) time.Time {
	if l.met {
		return time.Time{}
	}
	return time.Now().Add(handshake)
}

// freeze stops output. The writer of a full socket, which busy tells of, ends.
func (l *link) freeze(busy bool) {
	l.frozen = true
	if busy {
		_ = l.socket().SetWriteDeadline(longAgo)
	}
}

// thaw lets output continue; the caller starts a writer if one is needed.
func (l *link) thaw() {
	l.frozen, l.handed = false, false
	if l.reason() == reasonNone {
		_ = l.socket().SetWriteDeadline(time.Time{})
		if l.reason() != reasonNone {
			_ = l.socket().SetDeadline(longAgo)
		}
	}
}

// standsStill tells whether a writer was ended by the frost.
func (l *link) standsStill() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen
}

// wake makes a resting reader see that its connection was handed over.
func (l *link) wake() { _ = l.socket().SetReadDeadline(longAgo) }

// letGoAtOnce is how many connections are woken before a pause, so that the new process, which has as much to do, has
// the processors.
const letGoAtOnce = 32

// letGo wakes readers of connections that were handed over; they close their descriptors.
func letGo[C interface{ wake() }](all []C) {
	for i, c := range all {
		if c.wake(); i%letGoAtOnce == letGoAtOnce-1 {
			time.Sleep(time.Millisecond)
		}
	}
}

// abandon closes our descriptor of a connection that lives on elsewhere.
func (l *link) abandon() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.socket().Close()
}

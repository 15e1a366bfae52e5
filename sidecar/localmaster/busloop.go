package localmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"time"
)

const (
	busDialTimeout  = 5 * time.Second
	busWriteTimeout = 10 * time.Second
	busReadRoom     = 64 << 10
	busBatch        = 256 << 10 // bytes written at once
)

// backoff is the pause between attempts to connect.
type backoff struct{ next, least, most time.Duration }

func (b *Bus) backoff() *backoff {
	return &backoff{next: b.o.BackoffMin, least: b.o.BackoffMin, most: b.o.BackoffMax}
}

func (w *backoff) reset() { w.next = w.least }

// pause waits and reports whether to go on.
func (w *backoff) pause(ctx context.Context) bool {
	d := w.next/2 + rand.N(w.next/2+1)
	w.next = min(2*w.next, w.most)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: busDialTimeout}
	c, err := d.DialContext(ctx, e.network, e.address)
	if err != nil {
		return nil, fmt.Errorf("connect to the event bus: %w", err)
	}
	return c, nil
}

// busLearn is longer than anybody waits for those who hear a master that has just started (AwaitActors): they are told by their number,
// which must not count one too many who has just left.
const busLearn = time.Minute

// learns says whether the bus is read for its framing only.
func (b *Bus) learns() bool { return b.o.FireOnly && b.major <= 3006 }

// errLearnt ends a subscription that was for the framing.
var errLearnt = errors.New("the framing is known")

// receive keeps the subscription alive until the bus closes.
func (b *Bus) receive() {
	ctx, wait := b.receiving, b.backoff()
	for ctx.Err() == nil {
		c, err := b.pub.dial(ctx)
		if err == nil {
			wait.reset()
			err = b.events(ctx, c)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errLearnt) {
			if !b.another(ctx) {
				return
			}
			continue
		}
		b.o.Logger.Debug("event bus not readable", "path", b.pub.address, "err", err)
		if !wait.pause(ctx) {
			return
		}
	}
}

// another waits until there may be another master than the one whose framing is known; false: the bus closes.
func (b *Bus) another(ctx context.Context) bool {
	b.hearing.Store(false)
	select {
	case <-b.anew:
		b.hearing.Store(true)
		return true
	case <-ctx.Done():
		return false
	}
}

// hearAgain ends the wait in another. Who hears a master now notices by himself when it ends.
func (b *Bus) hearAgain() {
	if b.hearing.Load() {
		return
	}
	select {
	case b.anew <- struct{}{}:
	default:
	}
}

func (b *Bus) events(ctx context.Context, c net.Conn) error {
	began := time.Now()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()
	b.isUp.Store(true)
	b.metrics.up.Set(1)
	defer func() { b.isUp.Store(false); b.metrics.up.Set(0) }()
	r := frameReader{limit: b.o.MaxEvent}
	for {
		if err := r.fill(c); err != nil {
			return err
		}
		b.noteFraming(r.framing)
		if b.learns() && r.framing == prefixed && time.Since(began) >= b.o.Learn {
			return errLearnt
		}
		for {
			body, err := r.next()
			if err != nil {
				b.o.Logger.Warn("event bus unreadable, connecting anew", "path", b.pub.address, "err", err)
				return err
			}
			if body == nil {
				break
			}
			b.deliver(body)
		}
	}
}

func (b *Bus) deliver(body []byte) {
	tag, data, err := splitEvent(body)
	if err != nil {
		b.metrics.malformed.Inc()
		return
	}
	b.metrics.received.Inc()
	for _, h := range *b.active.Load() {
		h.f(tag, data)
	}
}

// frameReader cuts a stream into messages.
type frameReader struct {
	framing framing
	limit   int64
	buf     []byte // read and not yet cut, within room
	room    []byte
}

func (r *frameReader) fill(c io.Reader) error {
	switch {
	case len(r.room) == 0:
		r.room = make([]byte, busReadRoom)
	case len(r.buf) == len(r.room): // one message fills it all
		r.room = make([]byte, 2*len(r.room))
	case len(r.buf) == 0 && len(r.room) > 16*busReadRoom:
		r.room = make([]byte, busReadRoom)
	}
	kept := copy(r.room, r.buf)
	n, err := c.Read(r.room[kept:])
	r.buf = r.room[:kept+n]
	if n == 0 && err != nil {
		return err
	}
	if r.framing == unknownFraming && len(r.buf) > 0 {
		if r.framing, err = detectFraming(r.buf[0]); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next message, nil when more has to be read. It is valid until the next fill.
func (r *frameReader) next() ([]byte, error) {
	if len(r.buf) == 0 {
		return nil, nil
	}
	body, n, err := cutFrame(r.buf, r.framing, r.limit)
	if err != nil {
		return nil, err
	}
	r.buf = r.buf[n:]
	return body, nil
}

// send writes queued events until the bus closes and the queue is empty, or its grace is over.
func (b *Bus) send() {
	var c net.Conn
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	wait := b.backoff()
	var batch []byte
	for {
		first, ok := b.take()
		if !ok {
			return
		}
		if first.lazy {
			b.linger()
		}
		batch, count := b.batch(batch[:0], first)
		for rest := batch; ; {
			n, err := b.write(&c, rest)
			if err == nil {
				wait.reset()
				b.metrics.fired.Add(float64(count))
				b.progress(count, true)
				break
			}
			b.progress(0, false)
			b.o.Logger.Debug("event bus not writable", "path", b.pull.address, "err", err)
			rest = unwritten(rest, n)
			if !wait.pause(b.ctx) {
				return
			}
		}
		if cap(batch) > 4*busBatch {
			batch = nil
		}
	}
}

// take waits for an event; there is none any more when the bus has closed and its queue is empty.
func (b *Bus) take() (queuedEvent, bool) {
	select {
	case e := <-b.queue:
		return b.taken(e), true
	default:
	}
	select {
	case e := <-b.queue:
		return b.taken(e), true
	case <-b.closing:
	case <-b.ctx.Done():
		return queuedEvent{}, false
	}
	select {
	case e := <-b.queue:
		return b.taken(e), true
	default:
		return queuedEvent{}, false
	}
}

func (b *Bus) taken(e queuedEvent) queuedEvent {
	b.mu.Lock()
	if !e.lazy {
		b.urgent.Add(-1)
	}
	b.bytes -= int64(len(e.tag) + len(e.data))
	b.metrics.waiting.Dec()
	b.mu.Unlock()
	return e
}

// busLinger is how long a lazy event waits for others at most unless told otherwise. Each process of the master that listens pays for
// waking up: a dozen events together cost it a third to a half less than a dozen alone.
const busLinger = 20 * time.Millisecond

// linger waits for more events while those that are queued may wait.
func (b *Bus) linger() {
	timer := time.NewTimer(b.o.Linger)
	defer timer.Stop()
	for !b.pressing() {
		select {
		case <-b.hurry: // perhaps for what was written long ago
		case <-timer.C:
			return
		case <-b.closing:
			return
		case <-b.ctx.Done():
			return
		}
	}
}

// pressing says whether something is queued, or somebody waits, that should not wait for more events.
func (b *Bus) pressing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.urgent.Load() > 0 || b.bytes > busBatch
}

// quicken ends a linger.
func (b *Bus) quicken() {
	select {
	case b.hurry <- struct{}{}:
	default:
	}
}

// batch frames the event and what else waits.
func (b *Bus) batch(dst []byte, first queuedEvent) ([]byte, int) {
	f := b.pullFraming()
	dst = appendFrame(dst, f, first.tag, first.data)
	for count := 1; ; count++ {
		if len(dst) > busBatch {
			return dst, count
		}
		select {
		case e := <-b.queue:
			e = b.taken(e)
			dst = appendFrame(dst, f, e.tag, e.data)
		default:
			return dst, count
		}
	}
}

// noteFraming keeps what the bus is framed by. A master of 3006 that sent lengths and sends none any more is one of 3007 or 3008 now, which wants
// lengths all the same and would take an event without for the beginning of one of two gigabytes, and all that follow for its rest. saltclusterd is
// made anew for it soon; for an early one of 3006, to which somebody has gone back, too.
func (b *Bus) noteFraming(f framing) {
	if framing(b.frames.Load()) != prefixed {
		b.frames.Store(uint32(f))
	}
}

// pullFraming is what the master's version takes. Those of 3006 publish as they take; so does one that runs still when a newer one was installed.
func (b *Bus) pullFraming() framing {
	if f := framing(b.frames.Load()); b.major <= 3006 && f != unknownFraming {
		return f
	}
	if !b.lengths {
		return bare
	}
	return prefixed
}

// write sends a batch on a connection, a new one when the old one is broken: the master closes it when it ends.
func (b *Bus) write(c *net.Conn, batch []byte) (n int, err error) {
	if *c != nil && b.pull.network != "unix" && peerClosed(*c) {
		_ = (*c).Close()
		*c = nil
	}
	if *c == nil {
		if *c, err = b.pull.dial(b.ctx); err != nil {
			b.lost()
			return 0, err
		}
		b.hearAgain()
		if err = b.settled(); err != nil {
			return 0, err
		}
	}
	if err = (*c).SetWriteDeadline(time.Now().Add(busWriteTimeout)); err == nil {
		n, err = (*c).Write(batch)
	}
	if err != nil {
		_ = (*c).Close()
		*c = nil
		b.lost()
		return n, fmt.Errorf("write events: %w", err)
	}
	return n, nil
}

// unwritten drops the messages that were written whole before a connection broke, so that no event is fired twice.
func unwritten(batch []byte, n int) []byte {
	for len(batch) > 0 {
		f, err := detectFraming(batch[0])
		if err != nil {
			break
		}
		_, size, err := cutFrame(batch, f, math.MaxInt64)
		if err != nil || size == 0 || n < size {
			break
		}
		batch, n = batch[size:], n-size
	}
	return batch
}

// peerClosed looks for the end of a TCP connection on which nothing is ever received: a first write after it would
// seem to succeed. A unix socket tells at once.
func peerClosed(c net.Conn) bool {
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Microsecond)); err != nil {
		return true
	}
	var one [1]byte
	_, err := c.Read(one[:])
	var ne net.Error
	return err != nil && !(errors.As(err, &ne) && ne.Timeout())
}

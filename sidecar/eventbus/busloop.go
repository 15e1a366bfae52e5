package eventbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"saltclusterd/backoff"
)

const (
	busDialTimeout  = 5 * time.Second
	busWriteTimeout = 10 * time.Second
	busReadRoom     = 64 << 10
	busBatch        = 256 << 10 // bytes written at once
)

// newBackoff is the pause between attempts to connect.
func (b *Bus) newBackoff() *backoff.Backoff {
	return &backoff.Backoff{Min: b.o.BackoffMin, Max: b.o.BackoffMax, Jitter: true}
}

func (e endpoint) dialBus(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: busDialTimeout}
	c, err := d.DialContext(ctx, e.network, e.address)
	if err != nil {
		return nil, fmt.Errorf("connect to the event bus: %w", err)
	}
	return c, nil
}

// receiveEvents keeps the subscription alive until the bus closes.
func (b *Bus) receiveEvents() {
	ctx, wait := b.receiving, b.newBackoff()
	for ctx.Err() == nil {
		c, err := b.pub.dialBus(ctx)
		if err == nil {
			wait.Reset()
			err = b.readEvents(ctx, c)
		}
		if ctx.Err() != nil {
			return
		}
		b.o.Logger.Debug("event bus not readable", "path", b.pub.address, "err", err)
		if !wait.Wait(ctx) {
			return
		}
	}
}

func (b *Bus) readEvents(ctx context.Context, c net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()
	b.isUp.Store(true)
	b.metrics.up.Set(1)
	defer func() { b.isUp.Store(false); b.metrics.up.Set(0) }()
	r := frameReader{limit: b.o.MaxEvent}
	for {
		if err := r.fillBuffer(c); err != nil {
			return err
		}
		for {
			body, err := r.nextFrame()
			if err != nil {
				b.o.Logger.Warn("event bus unreadable, reconnecting", "path", b.pub.address, "err", err)
				return err
			}
			if body == nil {
				break
			}
			b.deliverEvent(body)
		}
	}
}

func (b *Bus) deliverEvent(body []byte) {
	tag, data, err := splitEvent(body)
	if err != nil {
		b.metrics.malformed.Inc()
		return
	}
	b.metrics.received.Inc()
	for _, h := range b.handlers.all() {
		h.f(tag, data)
	}
}

// frameReader cuts a stream into messages. Which framing a stream has shows in its first byte, whatever release writes
// it.
type frameReader struct {
	framing framing
	limit   int64
	buf     []byte // read and not yet cut, within room
	room    []byte
}

func (r *frameReader) fillBuffer(c io.Reader) error {
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

// nextFrame returns the next message, nil when more has to be read. It is valid until the next fillBuffer.
func (r *frameReader) nextFrame() ([]byte, error) {
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

// sendEvents writes queued events until the bus closes and the queue is empty, or its grace is over.
func (b *Bus) sendEvents() {
	var p pull
	defer p.close()
	wait := b.newBackoff()
	var batch []queuedEvent
	crowd := 0         // how many were written the last time
	var last time.Time // and when that was
	for {
		first, ok := b.takeEvent(&p)
		if !ok {
			return
		}
		if batch = batch[:0]; first.tag != "" {
			if first.lazy {
				b.lingerFor(lingerAfter(b.o.Linger, crowd, time.Since(last)))
			}
			batch = b.fillBatch(batch, first)
		}
		for rest := batch; ; {
			n, err := b.writeEvents(&p, rest)
			b.metrics.fired.Add(float64(n))
			b.noteProgress(n, err == nil)
			if err == nil {
				wait.Reset()
				break
			}
			b.o.Logger.Debug("event bus not writable", "path", b.pull.address, "err", err)
			rest = rest[n:]
			if !wait.Wait(b.ctx) {
				return
			}
		}
		crowd, last = len(batch), time.Now()
		clear(batch) // what was fired is not kept
	}
}

// noteClosed notes that the master has closed the connection.
func (b *Bus) noteClosed() {
	b.noteLost()
	b.noteProgress(0, false)
}

// takeEvent waits for an event; there is none any more when the bus has closed and its queue is empty. One without a
// tag says that a master has gone without reading what it was given.
func (b *Bus) takeEvent(p *pull) (e queuedEvent, ok bool) {
	select {
	case e := <-b.queue:
		return b.noteTaken(e), true
	default:
	}
	for waits := true; waits; {
		var glance <-chan time.Time
		if len(p.unread) > 0 {
			glance = time.After(busGlance)
		}
		select {
		case e := <-b.queue:
			return b.noteTaken(e), true
		case <-glance:
			if _, err := p.checkUnread(); err != nil {
				b.noteClosed()
				if len(p.again) > 0 {
					return queuedEvent{}, true
				}
			}
		case <-b.closing:
			waits = false
		case <-b.ctx.Done():
			return queuedEvent{}, false
		}
	}
	select {
	case e := <-b.queue:
		return b.noteTaken(e), true
	default:
		return queuedEvent{}, false
	}
}

func (b *Bus) noteTaken(e queuedEvent) queuedEvent {
	b.mu.Lock()
	b.removeEvent(e)
	b.metrics.waiting.Dec()
	b.mu.Unlock()
	return e
}

// busLinger is how long a lazy event waits for others at most unless told otherwise. Each process of the master that
// listens pays for waking up: a dozen events together cost it a third to a half less than a dozen alone. In a storm,
// which is where busCrowd events were just written, it waits busLingerTimes times as long, and they cost it another
// fifth less.
const (
	busLinger      = 50 * time.Millisecond
	busCrowd       = 8
	busLingerTimes = 5
)

// lingerAfter is how long a lazy event waits when so many were written the last time, and that long ago.
func lingerAfter(linger time.Duration, written int, ago time.Duration) time.Duration {
	if written < busCrowd || ago > linger {
		return linger
	}
	return busLingerTimes * linger
}

// lingerFor waits for more events while those that are queued may wait.
func (b *Bus) lingerFor(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for !b.mayNotWait() {
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

func (b *Bus) mayNotWait() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isPressing()
}

// fillBatch is the event and what else waits.
func (b *Bus) fillBatch(dst []queuedEvent, first queuedEvent) []queuedEvent {
	dst = append(dst, first)
	for size := frameSize(prefixed, first); size <= busBatch; {
		select {
		case e := <-b.queue:
			dst = append(dst, b.noteTaken(e))
			size += frameSize(prefixed, e)
		default:
			return dst
		}
	}
	return dst
}

// writeEvents fires events on a connection, a new one when the old one is broken: the master closes it when it ends. n
// are written whole, and are not to be fired again; before them goes what a former master had not read. They are framed
// when the connection stands: it may be to another release than the one they were queued for.
func (b *Bus) writeEvents(p *pull, events []queuedEvent) (n int, err error) {
	if p.c != nil && b.pull.network != "unix" && peerClosed(p.c) {
		p.close()
		b.noteLost()
	}
	if p.c == nil {
		if p.c, err = b.pull.dialBus(b.ctx); err != nil {
			b.noteLost()
			return 0, err
		}
		if err = b.waitSettled(); err != nil {
			return 0, err
		}
	}
	for len(p.again) > 0 {
		put, err := b.putEvents(p, b.firstPiece(p.again))
		if p.again = p.again[put:]; err != nil {
			return 0, err
		}
	}
	for n < len(events) {
		put, err := b.putEvents(p, b.firstPiece(events[n:]))
		if n += put; err != nil {
			return n, err
		}
	}
	return n, nil
}

// firstPiece is the events to write at once.
func (b *Bus) firstPiece(events []queuedEvent) []queuedEvent {
	if b.pull.network != "unix" {
		return events
	}
	size := 0
	for i, e := range events {
		if size += frameSize(prefixed, e); size > busPiece && i > 0 {
			return events[:i]
		}
	}
	return events
}

// putEvents writes events; n of them are not to be written again.
func (b *Bus) putEvents(p *pull, events []queuedEvent) (n int, err error) {
	before, err := p.checkUnread()
	if err != nil {
		b.noteLost()
		return 0, fmt.Errorf("write events: %w", err)
	}
	f := b.format.pullFraming()
	text := p.text[:0]
	for _, e := range events {
		text = appendFrame(text, f, e.tag, e.data)
	}
	if p.text = text; cap(text) > 4*busBatch {
		p.text = nil
	}
	size := 0
	if err = p.c.SetWriteDeadline(time.Now().Add(b.o.writeTimeout)); err == nil {
		c := p.c
		// Close waits for no master that stands still
		stop := context.AfterFunc(b.ctx, func() { _ = c.SetWriteDeadline(time.Now()) })
		size, err = c.Write(text)
		stop()
	}
	if err != nil {
		if n = p.noteFailed(events, f, size, err); p.c == nil {
			b.noteLost()
		}
		return n, fmt.Errorf("write events: %w", err)
	}
	if b.pull.network != "unix" {
		return len(events), nil
	}
	if n, err = p.noteWritten(events, size, before); err != nil {
		b.noteLost()
		return n, fmt.Errorf("write events: %w", err)
	}
	return n, nil
}

// countWritten counts the events that so many bytes hold whole.
func countWritten(events []queuedEvent, f framing, size int) (n int) {
	for _, e := range events {
		if size -= frameSize(f, e); size < 0 {
			break
		}
		n++
	}
	return n
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

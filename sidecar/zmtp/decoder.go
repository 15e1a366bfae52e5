package zmtp

import (
	"encoding/binary"
	"fmt"
)

// Kind tells what a Decoder found.
type Kind uint8

// What an Event can be.
const (
	None     Kind = iota // all input is consumed, nothing is complete
	Greeting             // the peer's greeting is complete and acceptable
	Command              // Body is a command's body: see ParseCommand
	Frame                // Body is a data frame's body
)

// Event is one thing a peer said.
type Event struct {
	Kind Kind
	More bool // Frame: another frame of the same message follows
	// Owned says that Body is the receiver's to keep. Otherwise it is a part
	// of the input given to Next and as short-lived as that.
	Owned bool
	Body  []byte
}

// state is what the next input byte belongs to.
type state uint8

const (
	inGreeting state = iota
	inHeader
	inBody
)

const (
	// firstGrab is the memory taken for a body of which the first bytes have come.
	firstGrab = 4 << 10
	// maxGrab bounds the memory taken at once for bytes that have not come yet. A body larger than that is kept in pieces
	// until it is complete, so that a peer cannot make us hold twice what it has sent.
	maxGrab = 1 << 20
)

// Decoder turns the bytes of one connection into events. It can stop at any
// byte and resume with the next; all it keeps is in its few fields, so that an
// idle connection costs nothing more. It is not safe for concurrent use.
type Decoder struct {
	limits *Limits
	state  state
	ready  bool // data frames are allowed
	minor  uint8
	flags  byte
	nhdr   uint8
	hdr    [MaxFrameHeader]byte // a header, as far as it has come
	parts  int32                // frames of the current message so far
	size   int                  // body size of the current frame
	grab   int                  // memory taken at once for a body
	total  int64                // body bytes of the current message so far
	buf    []byte               // a greeting, or the newest piece of a body, as far as it has come
	full   [][]byte             // the pieces of the body before it
	before int                  // bytes in full
}

// NewDecoder returns a decoder for a connection on which nothing was read
// yet. The limits are shared, not copied, and must have no zero field.
func NewDecoder(limits *Limits) Decoder { return Decoder{limits: limits, grab: firstGrab} }

// SetFirstGrab sets the memory in bytes that a body gets at once, before it
// has come; it saves copying where the peer is not hostile.
func (d *Decoder) SetFirstGrab(n int) { d.grab = n }

// SetReady tells the decoder that the peer's READY was accepted. Before, every
// data frame is an error.
func (d *Decoder) SetReady() { d.ready = true }

// Minor is the minor ZMTP version of the peer, known after its greeting. A
// peer of 3.0 does not know PING and SUBSCRIBE.
func (d *Decoder) Minor() int { return int(d.minor) }

// Buffered is the memory in bytes held for a body that is not complete.
func (d *Decoder) Buffered() int { return d.before + cap(d.buf) }

// Midway tells whether a message, a frame or a header is incomplete.
func (d *Decoder) Midway() bool { return d.parts > 0 || d.state == inBody || d.nhdr > 0 }

// Next consumes bytes from in, up to the end of the first complete thing, and
// returns what it was and how many bytes it took. With Kind None all of in was
// taken. An error is final.
func (d *Decoder) Next(in []byte) (ev Event, n int, err error) {
	if d.state == inGreeting {
		return d.readGreeting(in)
	}
	if d.state == inHeader {
		var complete bool
		if n, complete, err = d.readHeader(in); err != nil || !complete {
			return Event{}, n, err
		}
	}
	ev, used := d.readBody(in[n:])
	return ev, n + used, nil
}

func (d *Decoder) readGreeting(in []byte) (Event, int, error) {
	n := min(GreetingSize-len(d.buf), len(in))
	d.buf = append(d.buf, in[:n]...)
	if err := checkGreeting(d.buf); err != nil {
		return Event{}, n, err
	}
	if len(d.buf) < GreetingSize {
		return Event{}, n, nil
	}
	d.minor = d.buf[greetingMinor]
	if d.buf[greetingMajor] > 3 {
		d.minor = 1 // a later major version must talk down to ours
	}
	d.buf, d.state = nil, inHeader
	return Event{Kind: Greeting}, n, nil
}

// readHeader takes a frame header from in, which may hold only a part of it.
func (d *Decoder) readHeader(in []byte) (n int, complete bool, err error) {
	if len(in) == 0 {
		return 0, false, nil
	}
	h := in
	if d.nhdr > 0 || len(in) < 2 || in[0]&flagLong != 0 && len(in) < MaxFrameHeader {
		n = copy(d.hdr[d.nhdr:], in)
		h = d.hdr[:int(d.nhdr)+n]
	}
	if h[0]&^flagKnown != 0 || h[0]&flagCommand != 0 && h[0]&flagMore != 0 {
		return n, false, fmt.Errorf("flags %#02x: %w", h[0], ErrFlags)
	}
	need := 2
	if h[0]&flagLong != 0 {
		need = MaxFrameHeader
	}
	if len(h) < need {
		d.nhdr = uint8(len(h))
		return n, false, nil
	}
	n = need - int(d.nhdr)
	d.nhdr = 0
	size := uint64(h[1])
	if need == MaxFrameHeader {
		size = binary.BigEndian.Uint64(h[1:])
	}
	return n, true, d.startFrame(h[0], size)
}

// startFrame checks an announced frame against the limits, before any of its body
// is looked at or room made for it.
func (d *Decoder) startFrame(flags byte, size uint64) error {
	if flags&flagCommand != 0 {
		if size > uint64(d.limits.MaxCommand) {
			return fmt.Errorf("%d bytes: %w", size, ErrCommandTooLarge)
		}
		if d.parts > 0 {
			return fmt.Errorf("command inside a message: %w", ErrFlags)
		}
	} else {
		switch {
		case !d.ready:
			return fmt.Errorf("data before READY: %w", ErrHandshake)
		case size > uint64(d.limits.MaxFrame), flags&flagMore != 0 && size > uint64(d.limits.MaxMore):
			return fmt.Errorf("%d bytes: %w", size, ErrFrameTooLarge)
		case int(d.parts) >= d.limits.MaxParts:
			return ErrTooManyParts
		case d.total+int64(size) > d.limits.MaxMessage:
			return ErrMessageTooLarge
		}
		d.parts++
		d.total += int64(size)
	}
	d.flags, d.size, d.state = flags, int(size), inBody
	return nil
}

// readBody takes what in has of the current frame's body: all of it, without a
// copy, in the common case.
func (d *Decoder) readBody(in []byte) (Event, int) {
	if d.buf == nil && len(in) >= d.size {
		return d.finishFrame(in[:d.size:d.size], false), d.size
	}
	n := min(d.size-d.before-len(d.buf), len(in))
	d.appendBody(in[:n])
	if d.before+len(d.buf) < d.size {
		return Event{}, n
	}
	b := d.joinBody()
	d.buf, d.full, d.before = nil, nil, 0
	return d.finishFrame(b, true), n
}

// appendBody adds in to the body. The memory taken is never more than twice what has arrived (or a small first grab),
// never more than maxGrab beyond it, and never more than the frame needs.
func (d *Decoder) appendBody(in []byte) {
	for len(in) > 0 {
		if len(d.buf) == cap(d.buf) {
			if len(d.buf) > 0 {
				d.full = append(d.full, d.buf)
				d.before += len(d.buf)
			}
			d.buf = make([]byte, 0, min(d.size-d.before, max(d.grab, min(d.before+2*len(in), maxGrab))))
		}
		n := min(cap(d.buf)-len(d.buf), len(in))
		d.buf = append(d.buf, in[:n]...)
		in = in[n:]
	}
}

// joinBody returns the body as far as it has come, in one piece.
func (d *Decoder) joinBody() []byte {
	if len(d.full) == 0 {
		return d.buf
	}
	whole := make([]byte, 0, d.before+len(d.buf))
	for _, piece := range d.full {
		whole = append(whole, piece...)
	}
	return append(whole, d.buf...)
}

func (d *Decoder) finishFrame(body []byte, owned bool) Event {
	d.state = inHeader
	if d.flags&flagCommand != 0 {
		return Event{Kind: Command, Body: body, Owned: owned}
	}
	more := d.flags&flagMore != 0
	if !more {
		d.parts, d.total = 0, 0
	}
	return Event{Kind: Frame, More: more, Body: body, Owned: owned}
}

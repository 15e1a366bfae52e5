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

// firstGrab is the memory taken for a body of which only the header has come.
const firstGrab = 4 << 10

// Decoder turns the bytes of one connection into events. It can stop at any
// byte and go on with the next; all it keeps is in its few fields, so that an
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
	buf    []byte               // a greeting or a body, as far as it has come
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
func (d *Decoder) Buffered() int { return cap(d.buf) }

// Midway tells whether a message, a frame or a header is incomplete.
func (d *Decoder) Midway() bool { return d.parts > 0 || d.state == inBody || d.nhdr > 0 }

// Next consumes bytes from in, up to the end of the first complete thing, and
// returns what it was and how many bytes it took. With Kind None all of in was
// taken. An error is final.
func (d *Decoder) Next(in []byte) (ev Event, n int, err error) {
	if d.state == inGreeting {
		return d.greeting(in)
	}
	if d.state == inHeader {
		var complete bool
		if n, complete, err = d.header(in); err != nil || !complete {
			return Event{}, n, err
		}
	}
	ev, used := d.body(in[n:])
	return ev, n + used, nil
}

func (d *Decoder) greeting(in []byte) (Event, int, error) {
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

// header takes a frame header from in, which may hold only a part of it.
func (d *Decoder) header(in []byte) (n int, complete bool, err error) {
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
	return n, true, d.begin(h[0], size)
}

// begin checks an announced frame against the limits, before any of its body
// is looked at or room made for it.
func (d *Decoder) begin(flags byte, size uint64) error {
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
		case size > uint64(d.limits.MaxFrame):
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

// body takes what in has of the current frame's body: all of it, without a
// copy, in the common case.
func (d *Decoder) body(in []byte) (Event, int) {
	if d.buf == nil && len(in) >= d.size {
		return d.finish(in[:d.size:d.size], false), d.size
	}
	n := min(d.size-len(d.buf), len(in))
	d.grow(n)
	d.buf = append(d.buf, in[:n]...)
	if len(d.buf) < d.size {
		return Event{}, n
	}
	b := d.buf
	d.buf = nil
	return d.finish(b, true), n
}

// grow makes room for n more bytes: never more than twice what has arrived
// (or a small first grab), never more than the frame needs.
func (d *Decoder) grow(n int) {
	need := len(d.buf) + n
	if need <= cap(d.buf) && d.buf != nil {
		return
	}
	bigger := make([]byte, len(d.buf), min(d.size, max(2*need, d.grab)))
	copy(bigger, d.buf)
	d.buf = bigger
}

func (d *Decoder) finish(body []byte, owned bool) Event {
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

package wsframe

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gobwas/ws"
)

// What a Decoder refuses.
var (
	ErrHandshake = errors.New("not the handshake of a WebSocket")
	ErrFrame     = errors.New("not a frame of a WebSocket")
	ErrTooLarge  = errors.New("message too large")
)

// FirstByte is that of the handshake.
const FirstByte = 'G'

const handshakeBegin = "GET "

// maxHandshake bounds the bytes of a handshake. A minion's has some 250.
const maxHandshake = 4 << 10

// Kind is what an Event is.
type Kind uint8

// The kinds of events.
const (
	None    Kind = iota
	Opened       // Bytes answers the handshake
	Message      // Bytes is the message
	Ping         // Bytes is what the PONG repeats
	Closed       // the peer has announced the end
	Pong         // Bytes is what it carries
	Part         // Bytes is a part of a message, but not the last one; the decoder keeps it
)

// Event is something that a peer has said.
type Event struct {
	Kind  Kind
	Bytes []byte
	// Owned says that Bytes is the receiver's to keep. Otherwise it is a part of the input given to Next and as
	// short-lived as that.
	Owned bool
}

// Decoder turns the bytes of one connection into events. It can stop at any byte and resume with the next; an idle one
// holds no memory. It is not safe for concurrent use.
type Decoder struct {
	limit   int // bytes of a message
	opened  bool
	begun   bool   // message has begun, in a frame that was not the last
	buf     []byte // the incomplete handshake or frame; nil: there is none
	message []byte // frames before that
}

// State is where a Decoder stands, for another process.
type State struct {
	Opened, Begun    bool
	Arrived, Message []byte
}

// NewDecoder returns a decoder for messages of at most limit bytes.
func NewDecoder(limit int) Decoder { return Decoder{limit: limit} }

// Buffered is the memory in bytes held for what is not complete.
func (d *Decoder) Buffered() int { return cap(d.buf) + cap(d.message) }

// Midway tells whether a message, or the handshake, is incomplete.
func (d *Decoder) Midway() bool { return d.buf != nil || d.begun }

// State tells where it stands.
func (d *Decoder) State() State {
	return State{Opened: d.opened, Begun: d.begun, Arrived: d.buf, Message: d.message}
}

// ResumeDecoder returns a decoder that resumes where another one stopped.
func ResumeDecoder(limit int, s State) (Decoder, error) {
	d := Decoder{limit: limit, opened: s.Opened, begun: s.Begun, message: append([]byte(nil), s.Message...)}
	if s.Begun && !s.Opened || !s.Begun && len(s.Message) > 0 || len(s.Message) > limit {
		return d, ErrFrame
	}
	if len(s.Arrived) == 0 {
		return d, nil
	}
	ev, n, err := d.Next(append([]byte(nil), s.Arrived...))
	if err == nil && (ev.Kind != None || n != len(s.Arrived) || d.buf == nil) {
		err = ErrFrame // it would not have been kept
	}
	return d, err
}

// Next consumes bytes from in, up to the end of the first event, and returns that and how many bytes it took. It may
// change what it took. With Kind None all of in was taken. An error is final; Bytes is
// then what the peer is told, if anything.
func (d *Decoder) Next(in []byte) (ev Event, n int, err error) {
	if len(in) == 0 {
		return Event{}, 0, nil
	}
	if !d.opened {
		return d.handshake(in)
	}
	if d.buf == nil {
		size, err := d.frameSize(in)
		if err != nil {
			return Event{}, 0, err
		}
		if size > 0 && size <= len(in) {
			ev, err = d.frame(in[:size:size], false)
			return ev, size, err
		}
		d.buf = append([]byte(nil), in...)
		return Event{}, len(in), nil
	}
	for {
		size, err := d.frameSize(d.buf)
		switch {
		case err != nil:
			return Event{}, n, err
		case size > 0 && len(d.buf) == size:
			whole := d.buf
			d.buf = nil
			ev, err = d.frame(whole, true)
			return ev, n, err
		case n == len(in):
			return Event{}, n, nil
		case size == 0:
			size = len(d.buf) + 1 // the header, byte by byte
		}
		more := min(size-len(d.buf), len(in)-n)
		d.buf = append(d.buf, in[n:n+more]...)
		n += more
	}
}

// handshake is Next before hands were shaken.
func (d *Decoder) handshake(in []byte) (Event, int, error) {
	const end = "\r\n\r\n"
	before := len(d.buf)
	d.buf = append(d.buf, in[:min(len(in), maxHandshake-before)]...)
	if k := min(len(d.buf), len(handshakeBegin)); string(d.buf[:k]) != handshakeBegin[:k] {
		return Event{}, 0, ErrHandshake
	}
	from := max(before-len(end)+1, 0)
	i := bytes.Index(d.buf[from:], []byte(end))
	if i < 0 {
		if len(d.buf) == maxHandshake {
			return Event{}, 0, fmt.Errorf("handshake without end: %w", ErrTooLarge)
		}
		return Event{}, len(in), nil
	}
	size := from + i + len(end)
	request := bytes.NewReader(d.buf[:size])
	var answer bytes.Buffer
	_, err := ws.Upgrader{ReadBufferSize: maxHandshake}.Upgrade(struct {
		io.Reader
		io.Writer
	}{request, &answer})
	if err != nil {
		return Event{Bytes: answer.Bytes(), Owned: true}, 0, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	d.opened, d.buf = true, nil
	return Event{Kind: Opened, Bytes: answer.Bytes(), Owned: true}, size - before, nil
}

// headerSize is how long the header at the start of b is, 0 when b is too short to tell. A client's has a mask.
func headerSize(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	size := 2 + 4
	switch b[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	return size
}

// frameSize checks the header of the frame at the start of b, and returns how long the frame is; 0 when the header is
// not complete.
func (d *Decoder) frameSize(b []byte) (int, error) {
	if len(b) >= 2 && b[1]&0x80 == 0 {
		return 0, fmt.Errorf("%w: %w", ErrFrame, ws.ErrProtocolMaskRequired)
	}
	size := headerSize(b)
	if size == 0 || len(b) < size {
		return 0, nil
	}
	h, err := ws.ReadHeader(bytes.NewReader(b[:size]))
	if err == nil {
		state := ws.StateServerSide
		if d.begun {
			state = state.Set(ws.StateFragmented)
		}
		err = ws.CheckHeader(h, state)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrFrame, err)
	case h.OpCode == ws.OpText:
		return 0, fmt.Errorf("%w: a message of text", ErrFrame)
	case h.Length > int64(d.limit) || len(d.message)+int(h.Length) > d.limit && !h.OpCode.IsControl():
		return 0, ErrTooLarge
	}
	return size + int(h.Length), nil
}

// frame takes a whole frame, whose header was checked.
func (d *Decoder) frame(b []byte, owned bool) (Event, error) {
	size := headerSize(b)
	h, err := ws.ReadHeader(bytes.NewReader(b[:size]))
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	body := b[size:]
	ws.Cipher(body, h.Mask, 0)
	switch {
	case h.OpCode == ws.OpPing:
		return Event{Kind: Ping, Bytes: body, Owned: owned}, nil
	case h.OpCode == ws.OpPong:
		return Event{Kind: Pong, Bytes: body, Owned: owned}, nil
	case h.OpCode == ws.OpClose:
		return Event{Kind: Closed, Bytes: body, Owned: owned}, nil
	case h.Fin && !d.begun:
		return Event{Kind: Message, Bytes: body, Owned: owned}, nil
	}
	d.message = append(d.message, body...)
	if d.begun = !h.Fin; d.begun {
		return Event{Kind: Part, Bytes: body, Owned: owned}, nil
	}
	whole := d.message
	d.message = nil
	return Event{Kind: Message, Bytes: whole, Owned: true}, nil
}

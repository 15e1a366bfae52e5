package zmtp

import (
	"errors"
	"fmt"
	"math"

	"saltclusterd/sidecar/handover"
)

// ErrDecoderState says that a decoder cannot resume from a written-down state.
var ErrDecoderState = errors.New("impossible decoder state")

// DecoderState is a decoder written down, so that another process can resume at the same byte.
type DecoderState struct {
	Stage  uint8 // greeting, header or body
	Ready  bool
	Minor  uint8
	Flags  byte
	Header []byte // a header, as far as it has come
	Parts  int    // frames of the current message so far
	Size   int    // body size of the current frame
	Total  int64  // body bytes of the current message so far
	Buf    []byte // a greeting or a body, as far as it has come
}

// State writes d down. The byte strings may be the decoder's own.
func (d *Decoder) State() DecoderState {
	return DecoderState{
		Stage: uint8(d.state), Ready: d.ready, Minor: d.minor, Flags: d.flags, Header: d.hdr[:d.nhdr],
		Parts: int(d.parts), Size: d.size, Total: d.total, Buf: d.joinBody(),
	}
}

// ResumeDecoder returns a decoder that resumes where another one stopped. A frame that was let in under larger limits
// is let in to its end.
func ResumeDecoder(limits *Limits, s DecoderState) (Decoder, error) {
	d := Decoder{
		grab: firstGrab, limits: limits, state: state(s.Stage), ready: s.Ready, minor: s.Minor, flags: s.Flags,
		nhdr:  uint8(len(s.Header)),
		parts: int32(s.Parts), size: s.Size, total: s.Total,
	}
	bad := ""
	switch {
	case s.Stage > uint8(inBody) || s.Flags&^flagKnown != 0:
		bad = "stage"
	case len(s.Header) >= MaxFrameHeader || len(s.Header) > 0 && d.state != inHeader:
		bad = "header"
	case s.Parts < 0 || s.Parts > 1<<20 || s.Size < 0 || s.Total < 0:
		bad = "numbers"
	case d.state == inGreeting && len(s.Buf) >= GreetingSize, d.state == inHeader && len(s.Buf) > 0,
		d.state == inBody && len(s.Buf) > s.Size:
		bad = "buffer"
	}
	if bad == "" && d.state == inGreeting && len(s.Buf) > 0 {
		if err := checkGreeting(s.Buf); err != nil {
			bad = "greeting"
		}
	}
	if bad != "" {
		return Decoder{}, fmt.Errorf("%s: %w", bad, ErrDecoderState)
	}
	copy(d.hdr[:], s.Header)
	if len(s.Buf) > 0 {
		d.buf = append(make([]byte, 0, len(s.Buf)), s.Buf...)
	}
	return d, nil
}

// Encode writes s into a state record.
func (s DecoderState) Encode(e *handover.Encoder) {
	e.Uint(uint64(s.Stage))
	e.Bool(s.Ready)
	e.Uint(uint64(s.Minor))
	e.Uint(uint64(s.Flags))
	e.Bytes(s.Header)
	e.Int(s.Parts)
	e.Int(s.Size)
	e.Uint(uint64(s.Total))
	e.Bytes(s.Buf)
}

// DecodeState is Encode backwards. The byte strings are parts of the record.
func DecodeState(d *handover.Decoder) (s DecoderState) {
	s.Stage, s.Ready = uint8(d.Int(math.MaxUint8)), d.Bool()
	s.Minor, s.Flags = uint8(d.Int(math.MaxUint8)), byte(d.Int(math.MaxUint8))
	s.Header = d.Bytes()
	s.Parts, s.Size, s.Total = d.Int(math.MaxInt32), d.Int(math.MaxInt), int64(d.Int(math.MaxInt64))
	s.Buf = d.Bytes()
	return s
}

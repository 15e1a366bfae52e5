package tcpframe

import (
	"encoding/binary"
	"errors"
	"fmt"

	"saltclusterd/sidecar/saltwire"
)

// What a Decoder refuses.
var (
	ErrFrame    = errors.New("not a frame of Salt's tcp transport")
	ErrTooLarge = errors.New("frame too large")
	ErrTooDeep  = errors.New("frame too deep")
)

// FirstByte is that of each frame: a map of two.
const FirstByte = 0x82

const (
	// maxDepth bounds containers inside each other. saltwire lets 64 into a body.
	maxDepth = 66
	// maxHead bounds the head, which the reply repeats. Salt's has a UUID.
	maxHead = 512
	// frameValues are the keys and values of a frame.
	frameValues = 4
)

// Frame is one message.
type Frame struct {
	Head []byte // a msgpack map, which the reply repeats
	Body []byte // a msgpack value
	// Owned says that Head and Body are the receiver's to keep. Otherwise they are a part of the input given to Next and
	// as short-lived as that.
	Owned bool
}

// Decoder turns the bytes of one connection into frames. It can stop at any byte and resume with the next; an idle one
// holds no memory. It is not safe for concurrent use.
type Decoder struct {
	limit int    // bytes of a frame
	buf   []byte // the incomplete frame; nil: there is none
	scan  scan   // of buf
	open  *open  // of buf
}

// scan is how far a frame is known.
type scan struct {
	pos   int              // bytes before the next value, or its rest
	skip  int              // bytes of the value at pos, whose type and length are known
	ends  [frameValues]int // of the keys and values of the frame that are complete
	ended int              // how many those are
	depth int              // containers that are open
}

// open is how many values are still to come in each open container.
type open [maxDepth]uint32

// NewDecoder returns a decoder for frames of at most limit bytes.
func NewDecoder(limit int) Decoder { return Decoder{limit: limit} }

// Buffered is the memory in bytes held for a frame that is not complete.
func (d *Decoder) Buffered() int { return cap(d.buf) }

// Midway tells whether a frame is incomplete.
func (d *Decoder) Midway() bool { return d.buf != nil }

// Arrived returns the incomplete frame as far as it has come, for another process.
func (d *Decoder) Arrived() []byte { return d.buf }

// Next consumes bytes from in, up to the end of the first complete frame, and returns that and how many bytes it took.
// With ok false all of in was taken. An error is final.
func (d *Decoder) Next(in []byte) (f Frame, n int, ok bool, err error) {
	if d.buf != nil {
		return d.resume(in)
	}
	if len(in) == 0 {
		return Frame{}, 0, false, nil
	}
	var s scan
	var left open
	if ok, err = s.run(in, &left, d.limit); err != nil {
		return Frame{}, 0, false, err
	}
	if !ok {
		d.scan, d.open = s, new(open)
		*d.open = left
		d.buf = append([]byte(nil), in...)
		return Frame{}, len(in), false, nil
	}
	f, err = split(in[:s.pos:s.pos], s.ends)
	return f, s.pos, true, err
}

// resume is Next behind an incomplete frame.
func (d *Decoder) resume(in []byte) (f Frame, n int, ok bool, err error) {
	before := len(d.buf)
	for n < len(in) && !ok {
		// No more is kept than the value at hand is known to need, so that little of the next frame is copied.
		more := min(max(d.scan.pos+d.scan.skip-len(d.buf), minStep), len(in)-n)
		d.buf = append(d.buf, in[n:n+more]...)
		n += more
		if ok, err = d.scan.run(d.buf, d.open, d.limit); err != nil {
			return Frame{}, n, false, err
		}
	}
	if !ok {
		return Frame{}, n, false, nil
	}
	end := d.scan.pos
	f, err = split(d.buf[:end:end], d.scan.ends)
	f.Owned = true
	d.buf, d.scan, d.open = nil, scan{}, nil
	return f, end - before, true, err
}

// minStep is how many bytes are added at least to an incomplete frame before it is looked at again.
const minStep = 512

// Resume returns a decoder that resumes where another one stopped, which had Arrived.
func Resume(limit int, arrived []byte) (Decoder, error) {
	d := NewDecoder(limit)
	if len(arrived) == 0 {
		return d, nil
	}
	_, _, ok, err := d.Next(arrived)
	if ok {
		err = ErrFrame // it would not have been kept
	}
	return d, err
}

// run scans b, of which the first pos bytes are known, to the end of the frame. ok: pos is that end.
func (s *scan) run(b []byte, left *open, limit int) (ok bool, err error) {
	if s.depth == 0 { // the type of the frame itself, which is one byte: Salt's frames are maps of two
		if b[0] != FirstByte {
			return false, fmt.Errorf("first byte %#02x: %w", b[0], ErrFrame)
		}
		s.pos, s.depth, left[0] = 1, 1, frameValues
	}
	for {
		k := min(s.skip, len(b)-s.pos)
		s.pos += k
		if s.skip -= k; s.skip > 0 {
			return false, nil
		}
		for s.depth > 1 && left[s.depth-1] == 0 { // nothing is to come in the innermost container
			s.depth--
		}
		if s.depth == 1 {
			if begun := frameValues - int(left[0]); s.ended < begun {
				s.ends[s.ended] = s.pos
				s.ended++
			}
			if left[0] == 0 {
				return true, nil
			}
		}
		head, size, values, err := readType(b[s.pos:])
		switch {
		case err != nil:
			return false, err
		case head == 0:
			return false, nil
		case size > uint64(limit) || values > uint64(limit) || s.pos+head+int(size)+int(values) > limit:
			return false, ErrTooLarge
		case values > 0 && s.depth == maxDepth:
			return false, ErrTooDeep
		}
		s.pos += head
		s.skip = int(size)
		left[s.depth-1]--
		if values > 0 {
			left[s.depth] = uint32(values)
			s.depth++
		}
	}
}

// readType reads the type and length of the value at the start of b: head bytes, behind which come size bytes of its
// own or as many values. head is 0 when b is too short.
func readType(b []byte) (head int, size, values uint64, err error) {
	if len(b) == 0 {
		return 0, 0, 0, nil
	}
	c := b[0]
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small integers, nil, false, true
		return 1, 0, 0, nil
	case c <= 0x8f:
		return 1, 0, 2 * uint64(c&0x0f), nil
	case c <= 0x9f:
		return 1, 0, uint64(c & 0x0f), nil
	case c <= 0xbf:
		return 1, uint64(c & 0x1f), 0, nil
	case c == 0xc1:
		return 0, 0, 0, fmt.Errorf("type %#02x: %w", c, ErrFrame)
	}
	t := types[c-0xc0]
	if len(b) < 1+t.width {
		return 0, 0, 0, nil
	}
	var n uint64
	switch t.width {
	case 1:
		n = uint64(b[1])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		n = uint64(binary.BigEndian.Uint32(b[1:]))
	}
	return 1 + t.width, uint64(t.fixed) + n*uint64(t.bytes), n * uint64(t.values), nil
}

// types are those from 0xc0 to 0xdf: how long their length field is, how many bytes follow in any case, and how many
// bytes or values follow for each that the length counts.
var types = [32]struct{ width, fixed, bytes, values int }{
	0x04: {width: 1, bytes: 1}, 0x05: {width: 2, bytes: 1}, 0x06: {width: 4, bytes: 1}, // bin
	// ext
	0x07: {width: 1, fixed: 1, bytes: 1}, 0x08: {width: 2, fixed: 1, bytes: 1}, 0x09: {width: 4, fixed: 1, bytes: 1},
	0x0a: {fixed: 4}, 0x0b: {fixed: 8}, // float
	0x0c: {fixed: 1}, 0x0d: {fixed: 2}, 0x0e: {fixed: 4}, 0x0f: {fixed: 8}, // uint
	0x10: {fixed: 1}, 0x11: {fixed: 2}, 0x12: {fixed: 4}, 0x13: {fixed: 8}, // int
	0x14: {fixed: 2}, 0x15: {fixed: 3}, 0x16: {fixed: 5}, 0x17: {fixed: 9}, 0x18: {fixed: 17}, // fixext
	0x19: {width: 1, bytes: 1}, 0x1a: {width: 2, bytes: 1}, 0x1b: {width: 4, bytes: 1}, // raw
	0x1c: {width: 2, values: 1}, 0x1d: {width: 4, values: 1}, // array
	0x1e: {width: 2, values: 2}, 0x1f: {width: 4, values: 2}, // map
}

// split takes a complete frame apart. ends are where its keys and values end.
func split(b []byte, ends [frameValues]int) (f Frame, err error) {
	from := 1
	var part [frameValues][]byte
	for i, end := range ends {
		part[i] = b[from:end:end]
		from = end
	}
	for i := 0; i < frameValues; i += 2 {
		switch key, _ := saltwire.Bytes(part[i]); {
		case string(key) == "head" && f.Head == nil:
			f.Head = part[i+1]
		case string(key) == "body" && f.Body == nil:
			f.Body = part[i+1]
		default:
			return Frame{}, fmt.Errorf("keys: %w", ErrFrame)
		}
	}
	switch c := f.Head[0]; {
	case c&0xf0 != 0x80 && c != 0xde && c != 0xdf:
		return Frame{}, fmt.Errorf("head: %w", ErrFrame)
	case len(f.Head) > maxHead:
		return Frame{}, fmt.Errorf("head of %d bytes: %w", len(f.Head), ErrTooLarge)
	}
	return f, nil
}

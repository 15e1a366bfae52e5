package replica

import (
	"encoding/binary"
	"fmt"
)

// Format is what the bodies of one store begin with: a magic, a version, and the kind of what follows. Numbers are
// varints or big endian, texts and blobs have a uvarint length in front.
type Format struct {
	Magic   string
	Version byte
	Invalid error // that a body cannot be read
}

// Begin returns the beginning of a body.
func (f Format) Begin(kind byte) []byte { return append([]byte(f.Magic), f.Version, kind) }

// Open reads the beginning of a body.
func (f Format) Open(body []byte) (kind byte, r *Reader, err error) {
	n := len(f.Magic)
	if len(body) < n+2 || string(body[:n]) != f.Magic {
		return 0, nil, f.Invalid
	}
	if v := body[n]; v != f.Version {
		return 0, nil, fmt.Errorf("%w: version %d", f.Invalid, v)
	}
	return body[n+1], f.Read(body[n+2:]), nil
}

// Read reads what has no such beginning.
func (f Format) Read(b []byte) *Reader { return &Reader{b: b, invalid: f.Invalid} }

// Unknown is the error for a kind that the store does not know.
func (f Format) Unknown(kind byte) error { return fmt.Errorf("%w: kind %d", f.Invalid, kind) }

// AppendText appends a text.
func AppendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendBlob appends bytes.
func AppendBlob(dst, b []byte) []byte { return append(binary.AppendUvarint(dst, uint64(len(b))), b...) }

// Reader takes values off a body; the first that is not there or not allowed makes it bad, and then all are zero. What
// it returns points into the body.
type Reader struct {
	b       []byte
	bad     bool
	invalid error
}

// Fail makes the body bad.
func (r *Reader) Fail() { r.bad, r.b = true, nil }

// Bad says whether the body is bad.
func (r *Reader) Bad() bool { return r.bad }

// Left is how many bytes have not been read.
func (r *Reader) Left() int { return len(r.b) }

// End returns an error when the body is bad, or longer than what was read.
func (r *Reader) End() error {
	if r.bad || len(r.b) > 0 {
		return r.invalid
	}
	return nil
}

// Take reads n bytes.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.Fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// Count reads a uvarint of at most limit.
func (r *Reader) Count(limit uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.Fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Varint reads a signed number.
func (r *Reader) Varint() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Byte reads one that is at most most.
func (r *Reader) Byte(most byte) byte {
	b := r.Take(1)
	if r.bad || b[0] > most {
		r.Fail()
		return 0
	}
	return b[0]
}

// Blob reads bytes with their length in front.
func (r *Reader) Blob(limit uint64) []byte { return r.Take(r.Count(limit)) }

// Uint64 reads a big endian number.
func (r *Reader) Uint64() uint64 {
	b := r.Take(8)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

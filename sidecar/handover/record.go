package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// ErrState says that a state record is cut short or impossible.
var ErrState = errors.New("malformed state record")

// Encoder writes a state record: numbers of variable length, and bytes behind their length.
type Encoder struct{ buf []byte }

// Record is what was written.
func (e *Encoder) Record() []byte { return e.buf }

// Uint writes a number.
func (e *Encoder) Uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

// Int writes a number that is not negative.
func (e *Encoder) Int(v int) { e.Uint(uint64(max(v, 0))) }

// Duration writes a time span; a negative one becomes zero.
func (e *Encoder) Duration(d time.Duration) { e.Uint(uint64(max(d, 0))) }

// Bool writes a truth value.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint(1)
		return
	}
	e.Uint(0)
}

// Bytes writes a byte string.
func (e *Encoder) Bytes(b []byte) {
	e.Int(len(b))
	e.buf = append(e.buf, b...)
}

// Chain writes several byte strings as one.
func (e *Encoder) Chain(parts [][]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	e.Int(n)
	for _, p := range parts {
		e.buf = append(e.buf, p...)
	}
}

// String writes a string.
func (e *Encoder) String(s string) {
	e.Int(len(s))
	e.buf = append(e.buf, s...)
}

// Addr writes an address with its port.
func (e *Encoder) Addr(a netip.AddrPort) {
	var room [32]byte
	b, _ := a.AppendBinary(room[:0]) // never fails
	e.Bytes(b)
}

// Decoder reads a state record. The first error stays; after it every value is zero, so that it is enough to ask Err at
// the end and before a value makes the caller wait.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder reads from record, of which the byte strings it returns are parts.
func NewDecoder(record []byte) *Decoder { return &Decoder{rest: record} }

// Err is what was wrong so far.
func (d *Decoder) Err() error { return d.err }

// End is Err, or an error when something is left.
func (d *Decoder) End() error {
	if d.err == nil && len(d.rest) > 0 {
		d.failWith("%d bytes too many", len(d.rest))
	}
	return d.err
}

// Left is the number of bytes not read yet.
func (d *Decoder) Left() int { return len(d.rest) }

func (d *Decoder) failWith(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format+": %w", append(args, ErrState)...)
	}
	d.rest = nil
}

// Fail makes a value that was read, but makes no sense, an error of the record.
func (d *Decoder) Fail(what string) { d.failWith("%s", what) }

// Uint reads a number.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.failWith("number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Int reads a number up to limit.
func (d *Decoder) Int(limit int) int {
	v := d.Uint()
	if v > uint64(limit) {
		d.failWith("%d is more than %d", v, limit)
		return 0
	}
	return int(v)
}

// Count reads how many things follow, each at least one byte long, so that room for them may be made.
func (d *Decoder) Count() int { return d.Int(len(d.rest)) }

// Duration reads a time span.
func (d *Decoder) Duration() time.Duration { return time.Duration(d.Int(math.MaxInt64)) }

// Bool reads a truth value.
func (d *Decoder) Bool() bool { return d.Int(1) == 1 }

// Bytes reads a byte string, a part of the record; nil when it is empty.
func (d *Decoder) Bytes() []byte {
	n := d.Count()
	if d.err != nil || n > len(d.rest) {
		d.failWith("byte string")
		return nil
	}
	if n == 0 {
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// String reads a string.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Addr reads an address with its port.
func (d *Decoder) Addr() (a netip.AddrPort) {
	if err := a.UnmarshalBinary(d.Bytes()); err != nil {
		d.failWith("address")
	}
	return a
}

package saltvalue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// maxDepth bounds containers inside each other. A master may read deeper ones (saltwire.PeekLoad lets them pass): they
// are left to it.
const maxDepth = 256

// Keys of a map are remembered, to find equal ones, and take twenty times their size on the wire. No map may have more
// than maxKeys; one with more than manyKeys counts for manyDepth containers inside each other, for all around a value
// are remembered at once.
const (
	maxKeys   = 1 << 17
	manyKeys  = 1 << 12
	manyDepth = 32
)

// errDeep is a value of its own, for each container around it passes it on.
var errDeep = Needs("containers more than 256 deep inside each other, or fewer large maps")

// ErrMalformed means that no Salt can read a value.
var ErrMalformed = errors.New("saltvalue: malformed")

// NeedsPython is the error for what only the master's own code can do right.
type NeedsPython struct{ Reason string }

func (e *NeedsPython) Error() string {
	return "only the master itself can take it: " + e.Reason
}

// Needs is a NeedsPython with a reason as fmt.Sprintf makes it.
func Needs(format string, args ...any) error {
	return &NeedsPython{Reason: fmt.Sprintf(format, args...)}
}

// AppendDisk encodes the wire value at the start of b as Salt does on disk after decoding it: text and bytes, one
// family on the wire, part by content (salt/transport/frame.py:decode_embedded_strs), numbers take their shortest form.
func AppendDisk(dst, b []byte) (out, rest []byte, err error) { return fromWire.appendValue(dst, b, 0) }

// AppendAgain encodes the value at the start of b, as it is on disk, as Salt writes it there after reading it: text
// that is not valid UTF-8 is malformed, bytes stay bytes.
func AppendAgain(dst, b []byte) (out, rest []byte, err error) { return fromDisk.appendValue(dst, b, 0) }

// source is where values come from that go to the disk.
type source uint8

const (
	fromWire source = iota
	fromDisk
)

func (s source) appendValue(dst, b []byte, depth int) (out, rest []byte, err error) {
	switch msgp.NextType(b) {
	case msgp.StrType:
		v, rest, err := msgp.ReadStringZC(b)
		if err == nil && s == fromDisk && !utf8.Valid(v) {
			err = ErrMalformed
		}
		return appendText(dst, v), rest, asMalformed(err)
	case msgp.BinType:
		v, rest, err := msgp.ReadBytesZC(b)
		if s == fromDisk {
			return saltwire.AppendBin(dst, v), rest, asMalformed(err)
		}
		return appendText(dst, v), rest, asMalformed(err)
	case msgp.MapType:
		return s.appendMap(dst, b, depth)
	case msgp.ArrayType:
		n, rest, err := msgp.ReadArrayHeaderBytes(b)
		switch {
		case err != nil:
		case int64(n) > int64(len(rest)):
			err = ErrMalformed
		case depth >= maxDepth:
			err = errDeep
		}
		dst = saltwire.AppendArrayHeader(dst, int(n))
		for i := uint32(0); i < n && err == nil; i++ {
			dst, rest, err = s.appendValue(dst, rest, depth+1)
		}
		return dst, rest, asMalformed(err)
	case msgp.InvalidType:
		return dst, b, ErrMalformed
	case msgp.ExtensionType, msgp.TimeType, msgp.Complex64Type, msgp.Complex128Type:
		return appendDatetime(dst, b)
	}
	return appendScalar(dst, b)
}

func appendScalar(dst, b []byte) (out, rest []byte, err error) {
	switch msgp.NextType(b) {
	case msgp.IntType:
		var v int64
		v, rest, err = msgp.ReadInt64Bytes(b)
		dst = saltwire.AppendInt(dst, v)
	case msgp.UintType:
		var v uint64
		v, rest, err = msgp.ReadUint64Bytes(b)
		dst = saltwire.AppendUint(dst, v)
	case msgp.Float64Type:
		if len(b) < 9 {
			return dst, b, ErrMalformed
		}
		dst, rest = append(dst, b[:9]...), b[9:]
	case msgp.Float32Type:
		var v float32
		v, rest, err = msgp.ReadFloat32Bytes(b)
		dst = binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(float64(v)))
	case msgp.BoolType:
		var v bool
		v, rest, err = msgp.ReadBoolBytes(b)
		dst = saltwire.AppendBool(dst, v)
	case msgp.NilType:
		rest, err = msgp.ReadNilBytes(b)
		dst = saltwire.AppendNil(dst)
	default:
		err = ErrMalformed
	}
	return dst, rest, asMalformed(err)
}

func appendText(dst, v []byte) []byte {
	if !utf8.Valid(v) {
		return saltwire.AppendBin(dst, v)
	}
	if n := len(v); n >= 32 && n <= math.MaxUint8 {
		return append(append(dst, 0xd9, byte(n)), v...)
	}
	return saltwire.AppendRaw(dst, v)
}

// appendMap refuses what a Python dict would merge: equal keys, and True beside 1.
func (s source) appendMap(dst, b []byte, depth int) (out, rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil || 2*int64(n) > int64(len(rest)) {
		return dst, b, ErrMalformed
	}
	below := depth + 1
	if n > manyKeys {
		below = depth + manyDepth
	}
	switch {
	case n > maxKeys:
		return dst, b, Needs("a map of more than %d keys", maxKeys)
	case below > maxDepth:
		return dst, b, errDeep
	}
	dst = saltwire.AppendMapHeader(dst, int(n))
	var keys keySet
	for range n {
		switch msgp.NextType(rest) {
		case msgp.StrType, msgp.BinType, msgp.IntType, msgp.UintType, msgp.NilType:
		default:
			return dst, b, Needs("a map with keys that are neither text nor numbers")
		}
		at := len(dst)
		if dst, rest, err = s.appendValue(dst, rest, below); err != nil {
			return dst, b, err
		}
		if !keys.addKey(dst, at) {
			return dst, b, Needs("a map with the same key twice")
		}
		if dst, rest, err = s.appendValue(dst, rest, below); err != nil {
			return dst, b, err
		}
	}
	return dst, rest, nil
}

// keySet finds equal keys of one map without allocating for small ones.
type keySet struct {
	n     int
	few   [24][2]int // where keys stand; a return has some fifteen
	large map[string]struct{}
}

func (k *keySet) addKey(buf []byte, from int) bool {
	key := buf[from:]
	if k.large == nil && k.n < len(k.few) {
		for _, at := range k.few[:k.n] {
			if string(buf[at[0]:at[1]]) == string(key) {
				return false
			}
		}
		k.few[k.n] = [2]int{from, len(buf)}
		k.n++
		return true
	}
	if k.large == nil {
		k.large = make(map[string]struct{}, 4*len(k.few))
		for _, at := range k.few[:k.n] {
			k.large[string(buf[at[0]:at[1]])] = struct{}{}
		}
	}
	if _, ok := k.large[string(key)]; ok {
		return false
	}
	k.large[string(key)] = struct{}{}
	return true
}

// MayHaveDate says whether there may be a datetime in a raw value.
func MayHaveDate(raw []byte) bool { return bytes.Contains(raw, datetimeHead) }

// datetimeHead is how a datetime begins: an extension of 24 bytes, type 78.
var datetimeHead = []byte{0xc7, 24, 78}

// appendDatetime keeps Salt's own extension 78, a datetime, as it is. One that is not a valid date cannot be read by
// any Salt, neither by the master that it was sent to nor by readers of the job cache or the bus.
func appendDatetime(dst, b []byte) (out, rest []byte, err error) {
	const layout = "00000000T00:00:00.000000"
	if len(b) < 3+len(layout) || !bytes.HasPrefix(b, datetimeHead) {
		return dst, b, Needs("a value of an extension type")
	}
	n := 3 + len(layout)
	for i, c := range []byte(layout) {
		if v := b[3+i]; c == '0' && (v < '0' || v > '9') || c != '0' && v != c {
			return dst, b, Needs("a value of an extension type")
		}
	}
	if at, err := time.Parse("20060102T15:04:05.000000", string(b[3:n])); err != nil || at.Year() < 1 {
		return dst, b, ErrMalformed
	}
	return append(dst, b[:n]...), b[n:], nil
}

// asMalformed is asked after each value: the target of errors.As would be on the heap each time, also for nil.
func asMalformed(err error) error {
	if _, python := errors.AsType[*NeedsPython](err); err == nil || python || errors.Is(err, ErrMalformed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

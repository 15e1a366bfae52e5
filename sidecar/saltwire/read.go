package saltwire

import (
	"encoding/binary"
	"math"
)

// kind is the family of a msgpack value, as far as Salt tells them apart. Raw, str and bin are one: Salt packs text and
// bytes alike and decides by content when it reads.
type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindFloat
	kindBytes
	kindArray
	kindMap
	kindExt
)

// head is a decoded msgpack type byte with its length field.
type head struct {
	kind kind
	len  int // bytes of type byte and length field
	size int // what follows: bytes, or elements of an array, or pairs of a map
}

// rules bound what a walk accepts.
type rules struct {
	depth int  // containers inside each other
	ext   bool // extension types (Salt sends datetimes as one); stock masters raise on malformed ones
}

var (
	// openRules are for bytes anyone may send: what Python could stumble over while decoding is refused.
	openRules = rules{depth: 64}
	// sealedRules are for loads that an accepted minion or a master encrypted. A stock master reads some 900 containers
	// inside each other, what Python's own limit of 1000 leaves to it; what is deeper it answers as we do.
	sealedRules = rules{depth: 900, ext: true}
)

// readHead decodes the start of b and checks that as many bytes follow as it announces (one at least per element), so
// no caller can be made to loop or allocate beyond the size of its input.
func readHead(b []byte) (head, error) {
	if len(b) == 0 {
		return head{}, refuse(ReasonTruncated, "")
	}
	h, width := classifyByte(b[0])
	if h.kind == kindNil && b[0] != 0xc0 {
		return head{}, refuse(ReasonFormat, "")
	}
	h.len = 1 + width
	if len(b) < h.len {
		return head{}, refuse(ReasonTruncated, "")
	}
	size := uint64(h.size)
	switch width {
	case 1:
		size += uint64(b[1])
	case 2:
		size += uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		size += uint64(binary.BigEndian.Uint32(b[1:]))
	}
	need := size
	if h.kind == kindMap {
		need *= 2
	}
	if need > uint64(len(b)-h.len) {
		return head{}, refuse(ReasonTruncated, "")
	}
	h.size = int(size)
	return h, nil
}

// classifyByte returns the kind of a type byte, the part of its size that is known from the byte alone, and the width
// of the length field that follows. An invalid byte gives kindNil.
func classifyByte(c byte) (h head, width int) {
	switch {
	case c <= 0x7f, c >= 0xe0:
		return head{kind: kindInt}, 0
	case c <= 0x8f:
		return head{kind: kindMap, size: int(c & 0x0f)}, 0
	case c <= 0x9f:
		return head{kind: kindArray, size: int(c & 0x0f)}, 0
	case c <= 0xbf:
		return head{kind: kindBytes, size: int(c & 0x1f)}, 0
	}
	switch c {
	case 0xc2, 0xc3:
		return head{kind: kindBool}, 0
	case 0xc4, 0xc5, 0xc6: // bin
		return head{kind: kindBytes}, 1 << (c - 0xc4)
	case 0xc7, 0xc8, 0xc9: // ext: one byte of type comes before the data
		return head{kind: kindExt, size: 1}, 1 << (c - 0xc7)
	case 0xca, 0xcb:
		return head{kind: kindFloat, size: 4 << (c - 0xca)}, 0
	case 0xcc, 0xcd, 0xce, 0xcf:
		return head{kind: kindInt, size: 1 << (c - 0xcc)}, 0
	case 0xd0, 0xd1, 0xd2, 0xd3:
		return head{kind: kindInt, size: 1 << (c - 0xd0)}, 0
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext
		return head{kind: kindExt, size: 1 + 1<<(c-0xd4)}, 0
	case 0xd9, 0xda, 0xdb:
		return head{kind: kindBytes}, 1 << (c - 0xd9)
	case 0xdc, 0xdd:
		return head{kind: kindArray}, 2 << (c - 0xdc)
	case 0xde, 0xdf:
		return head{kind: kindMap}, 2 << (c - 0xde)
	}
	return head{kind: kindNil}, 0
}

// skipValue returns what follows the first value in b, having checked that value whole.
func skipValue(b []byte, r rules) ([]byte, error) {
	h, err := readHead(b)
	if err != nil {
		return nil, err
	}
	rest := b[h.len:]
	switch h.kind {
	case kindArray:
		if r.depth--; r.depth < 0 {
			return nil, refuse(ReasonDepth, "")
		}
		for range h.size {
			if rest, err = skipValue(rest, r); err != nil {
				return nil, err
			}
		}
		return rest, nil
	case kindMap:
		if r.depth--; r.depth < 0 {
			return nil, refuse(ReasonDepth, "")
		}
		return skipPairs(rest, h.size, r)
	case kindExt:
		if !r.ext || !saltExt(rest[0]) {
			return nil, refuse(ReasonFormat, "")
		}
	}
	return rest[h.size:], nil
}

// saltExt says whether that is the type of an extension that Salt packs: a datetime, a constant. Of any other one
// Python gets the content as if it had been sent as text (salt/payload.py ext_type_decoder), under the eyes of rules
// that look at text.
func saltExt(code byte) bool { return code == 78 || code == 79 }

// skipPairs refuses containers as keys: Python cannot hash them and gives up on the whole message.
func skipPairs(b []byte, pairs int, r rules) ([]byte, error) {
	for range pairs {
		h, err := readHead(b)
		if err != nil {
			return nil, err
		}
		if h.kind == kindArray || h.kind == kindMap {
			return nil, refuse(ReasonKeyType, "")
		}
		if b, err = skipValue(b, r); err != nil {
			return nil, err
		}
		if b, err = skipValue(b, r); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Bytes returns the content of value if it is a raw, str or bin. The result aliases value.
func Bytes(value []byte) ([]byte, bool) {
	h, err := readHead(value)
	if err != nil || h.kind != kindBytes || len(value) != h.len+h.size {
		return nil, false
	}
	return value[h.len:], true
}

// Int returns value if it is an integer that fits int64.
func Int(value []byte) (int64, bool) {
	u, negative, ok := readInteger(value)
	if !ok || !negative && u > math.MaxInt64 {
		return 0, false
	}
	return int64(u), true
}

// Uint returns value if it is an integer of 0 or more.
func Uint(value []byte) (uint64, bool) {
	u, negative, ok := readInteger(value)
	return u, ok && !negative
}

// readInteger returns the two's complement bits of any msgpack integer and whether it is below zero.
func readInteger(value []byte) (bits uint64, negative, ok bool) {
	h, err := readHead(value)
	if err != nil || h.kind != kindInt || len(value) != h.len+h.size {
		return 0, false, false
	}
	c, p := value[0], value[1:]
	var s int64
	switch c {
	case 0xcc:
		return uint64(p[0]), false, true
	case 0xcd:
		return uint64(binary.BigEndian.Uint16(p)), false, true
	case 0xce:
		return uint64(binary.BigEndian.Uint32(p)), false, true
	case 0xcf:
		return binary.BigEndian.Uint64(p), false, true
	case 0xd0:
		s = int64(int8(p[0]))
	case 0xd1:
		s = int64(int16(binary.BigEndian.Uint16(p)))
	case 0xd2:
		s = int64(int32(binary.BigEndian.Uint32(p)))
	case 0xd3:
		s = int64(binary.BigEndian.Uint64(p))
	default:
		s = int64(int8(c)) // fixint
	}
	return uint64(s), s < 0, true
}

// Bool returns value if it is a boolean.
func Bool(value []byte) (b, ok bool) {
	if len(value) != 1 {
		return false, false
	}
	return value[0] == 0xc3, value[0]&0xfe == 0xc2
}

// isNil says whether value is None.
func isNil(value []byte) bool { return len(value) == 1 && value[0] == 0xc0 }

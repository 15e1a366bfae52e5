package msgpack

import (
	"encoding/binary"
	"math"
)

// Number returns the number in v, whole or not; false when v is something else.
func Number(v []byte) (float64, bool) {
	switch {
	case len(v) == 1 && v[0] <= 0x7f:
		return float64(v[0]), true
	case len(v) == 1 && v[0] >= 0xe0:
		return float64(int8(v[0])), true
	case len(v) < 2 || len(v) != widths[v[0]]:
		return 0, false
	}
	raw := make([]byte, 8) // sign extended below
	copy(raw[8-(len(v)-1):], v[1:])
	bits := binary.BigEndian.Uint64(raw)
	switch v[0] {
	case 0xca:
		return float64(math.Float32frombits(uint32(bits))), true
	case 0xcb:
		return math.Float64frombits(bits), true
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := uint(64 - 8*(len(v)-1))
		return float64(int64(bits<<shift) >> shift), true
	}
	return float64(bits), true
}

// widths are the lengths of encoded numbers by their type byte.
var widths = map[byte]int{0xca: 5, 0xcb: 9, 0xcc: 2, 0xcd: 3, 0xce: 5, 0xcf: 9, 0xd0: 2, 0xd1: 3, 0xd2: 5, 0xd3: 9}

// AppendMapHead appends the head of a map of n entries, of which there are at most 15.
func AppendMapHead(dst []byte, n int) []byte { return append(dst, 0x80|byte(n)) }

// AppendUint appends a number the way Python's msgpack does.
func AppendUint(dst []byte, n uint64) []byte {
	switch {
	case n <= 0x7f:
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), n)
}

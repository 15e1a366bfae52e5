package saltwire

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Style says which string family an encoder writes (docs/dev/protocol.md §0).
type Style int

const (
	Wire Style = iota // network: text and bytes alike in the old raw family (use_bin_type=False)
	Disk              // files and the local event bus: str and bin apart (use_bin_type=True)
)

// AppendRaw writes text or bytes as the network carries them: fixstr, str16 or str32.
func AppendRaw[T string | []byte](dst []byte, b T) []byte {
	return append(AppendRawHeader(dst, len(b)), b...)
}

// AppendRawHeader announces text or bytes of n bytes, which the caller puts behind it.
func AppendRawHeader(dst []byte, n int) []byte {
	switch {
	case n < 32:
		return append(dst, 0xa0|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
}

// AppendStr writes text as files and the event bus carry it: as AppendRaw, with str8 between.
func AppendStr(dst []byte, s string) []byte {
	if n := len(s); n >= 32 && n <= math.MaxUint8 {
		return append(append(dst, 0xd9, byte(n)), s...)
	}
	return AppendRaw(dst, s)
}

// AppendBin writes bytes as files and the event bus carry them.
func AppendBin(dst, b []byte) []byte {
	switch n := len(b); {
	case n <= math.MaxUint8:
		dst = append(dst, 0xc4, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xc5), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xc6), uint32(n))
	}
	return append(dst, b...)
}

// AppendMapHeader starts a map of n entries.
func AppendMapHeader(dst []byte, n int) []byte { return appendCount(dst, n, 0x80, 0xde) }

// AppendArrayHeader starts an array of n elements.
func AppendArrayHeader(dst []byte, n int) []byte { return appendCount(dst, n, 0x90, 0xdc) }

func appendCount(dst []byte, n int, fix, wide byte) []byte {
	switch {
	case n < 16:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, wide+1), uint32(n))
}

// AppendNil writes None.
func AppendNil(dst []byte) []byte { return append(dst, 0xc0) }

// AppendBool writes a boolean.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

// AppendInt writes an integer in its shortest form.
func AppendInt(dst []byte, i int64) []byte {
	switch {
	case i >= 0:
		return AppendUint(dst, uint64(i))
	case i >= -32:
		return append(dst, byte(i))
	case i >= math.MinInt8:
		return append(dst, 0xd0, byte(i))
	case i >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(i))
	case i >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(i))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(i))
}

// AppendUint writes an integer of 0 or more in its shortest form.
func AppendUint(dst []byte, u uint64) []byte {
	switch {
	case u < 0x80:
		return append(dst, byte(u))
	case u <= math.MaxUint8:
		return append(dst, 0xcc, byte(u))
	case u <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(u))
	case u <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(u))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), u)
}

// AppendAny writes nil, bool, int, int64, uint64, float64, string, []byte, []string, []any and map[string]any (keys
// sorted, so that equal values give equal bytes). Errors: a value of another type; dst is then returned as it was.
func AppendAny(dst []byte, v any, s Style) ([]byte, error) {
	out, err := appendAny(dst, v, s)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendAny(dst []byte, v any, s Style) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return AppendNil(dst), nil
	case bool:
		return AppendBool(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case int64:
		return AppendInt(dst, v), nil
	case uint64:
		return AppendUint(dst, v), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v)), nil
	case string:
		return s.appendText(dst, v), nil
	case []byte:
		if s == Disk {
			return AppendBin(dst, v), nil
		}
		return AppendRaw(dst, v), nil
	case Value: // whatever it is, as it is
		return append(dst, v...), nil
	case []string:
		dst = AppendArrayHeader(dst, len(v))
		for _, e := range v {
			dst = s.appendText(dst, e)
		}
		return dst, nil
	case []any:
		return appendArray(dst, v, s)
	case map[string]any:
		return appendMap(dst, v, s)
	}
	return dst, fmt.Errorf("encoding msgpack: no form for a %T", v)
}

func (s Style) appendText(dst []byte, v string) []byte {
	if s == Disk {
		return AppendStr(dst, v)
	}
	return AppendRaw(dst, v)
}

func appendArray(dst []byte, v []any, s Style) (_ []byte, err error) {
	dst = AppendArrayHeader(dst, len(v))
	for _, e := range v {
		if dst, err = appendAny(dst, e, s); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func appendMap(dst []byte, v map[string]any, s Style) (_ []byte, err error) {
	dst = AppendMapHeader(dst, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		dst = s.appendText(dst, k)
		if dst, err = appendAny(dst, v[k], s); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

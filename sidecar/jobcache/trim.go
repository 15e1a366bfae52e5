package jobcache

import (
	"fmt"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// trimmed stands where a value was too large for an event.
const trimmed = "VALUE_TRIMMED"

// bytesOverhead is sys.getsizeof(b"") in the Pythons that Salt ships with.
const bytesOverhead = 33

// trimEvent replaces large values until an event's data fits max_event_size (salt/utils/dicttrim.py:trim_dict); data
// that fits comes back as it is.
func trimEvent(raw []byte, limit int64) ([]byte, error) {
	if int64(len(raw))+bytesOverhead <= limit {
		return raw, nil
	}
	for percent := int64(50); ; percent -= 10 {
		t := trimmer{most: float64(limit) * float64(percent) / 100, again: percent < 50}
		out, _, err := t.trimPairs(make([]byte, 0, min(len(raw), int(max(limit, 1024)))), raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		raw = out
		if int64(len(raw))+bytesOverhead < limit || percent == 10 {
			return raw, nil
		}
	}
}

type trimmer struct {
	most  float64
	again bool // values have been encoded before: Python keeps the UTF-8 of text with them from then on
}

func (t trimmer) trimPairs(dst, raw []byte) (out, rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(raw)
	if err != nil {
		return nil, nil, err
	}
	dst = saltwire.AppendMapHeader(dst, int(n))
	for range n {
		val, err := msgp.Skip(rest)
		if err != nil {
			return nil, nil, err
		}
		dst = append(dst, rest[:len(rest)-len(val)]...)
		if saltvalue.IsMap(val) {
			if dst, rest, err = t.trimPairs(dst, val); err != nil {
				return nil, nil, err
			}
			continue
		}
		if rest, err = msgp.Skip(val); err != nil {
			return nil, nil, err
		}
		if val = val[:len(val)-len(rest)]; float64(t.trimmedSize(val)) > t.most {
			val = saltwire.AppendStr(nil, trimmed)
		}
		dst = append(dst, val...)
	}
	return dst, rest, nil
}

// trimmedSize is sys.getsizeof: of containers the object alone, without what it holds.
func (t trimmer) trimmedSize(raw []byte) int {
	switch msgp.NextType(raw) {
	case msgp.StrType:
		v, _, _ := msgp.ReadStringZC(raw)
		return t.textSize(v)
	case msgp.BinType:
		v, _, _ := msgp.ReadBytesZC(raw)
		return bytesOverhead + len(v)
	case msgp.ArrayType:
		n, _, _ := msgp.ReadArrayHeaderBytes(raw)
		return 56 + 8*int(n)
	case msgp.NilType:
		return 16
	case msgp.Float64Type:
		return 24
	case msgp.ExtensionType:
		return 48
	}
	return 28
}

// textSize depends on the widest character, which all of a Python string's take.
func (t trimmer) textSize(v []byte) int {
	widest, chars := rune(0), 0
	for i := 0; i < len(v); chars++ {
		r, n := utf8.DecodeRune(v[i:])
		widest = max(widest, r)
		i += n
	}
	size := 0
	switch {
	case widest < 0x80:
		return 49 + chars
	case widest < 0x100:
		size = 73 + chars
	case widest < 0x10000:
		size = 74 + 2*chars
	default:
		size = 76 + 4*chars
	}
	if t.again {
		size += len(v) + 1
	}
	return size
}

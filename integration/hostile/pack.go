package hostile

import (
	"encoding/binary"
	"fmt"
	"math"

	"saltclusterd/sidecar/saltwire"
)

// packed is a value as msgpack. Values are made as bytes, for much of what is tried has no form in Go.
type packed []byte

func text(s string) packed { return saltwire.AppendRaw(nil, s) }

func number(n int64) packed { return saltwire.AppendInt(nil, n) }

func flag(b bool) packed { return saltwire.AppendBool(nil, b) }

var null = packed{0xc0}

func list(of ...packed) packed {
	out := packed(saltwire.AppendArrayHeader(nil, len(of)))
	for _, v := range of {
		out = append(out, v...)
	}
	return out
}

// entry of a map; the key may be anything.
type entry struct{ key, value packed }

func pair(key string, value packed) entry { return entry{text(key), value} }

func dict(of ...entry) packed {
	out := packed(saltwire.AppendMapHeader(nil, len(of)))
	for _, e := range of {
		out = append(append(out, e.key...), e.value...)
	}
	return out
}

// nested is a value inside so many lists or maps.
func nested(v packed, depth int, maps bool) packed {
	for range depth {
		if maps {
			v = dict(pair("a", v))
		} else {
			v = list(v)
		}
	}
	return v
}

func float(f float64) packed {
	return binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(f))
}

// bin is a byte string of the newer family, which no stock minion sends.
func bin(s string) packed { return saltwire.AppendBin(nil, []byte(s)) }

// extension is a value of a type of its own; Salt has two, 78 and 79.
func extension(kind byte, content string) packed {
	return append(packed{0xc7, byte(len(content)), kind}, content...)
}

// quote shows a value to people.
func quote(v packed) string { return fmt.Sprintf("%q", []byte(v)) }

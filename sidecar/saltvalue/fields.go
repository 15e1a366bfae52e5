package saltvalue

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// Field is an entry of a map, both raw.
type Field struct{ Key, Val []byte }

// Fields is a Python dict: in order, and Set replaces in place or adds at the end.
type Fields []Field

// ParseLoad decodes a load as it came over the wire.
func ParseLoad(load []byte) (Fields, error) {
	raw, rest, err := AppendDisk(make([]byte, 0, len(load)+len(load)/16+64), load)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, ErrMalformed
	}
	f, ok := ParseFields(raw)
	if !ok {
		return nil, ErrMalformed
	}
	return f, nil
}

// ParseFields splits a raw map, which is known to be well-formed. ok is false when raw is not a map.
func ParseFields(raw []byte) (f Fields, ok bool) {
	if msgp.NextType(raw) != msgp.MapType {
		return nil, false
	}
	n, rest, err := msgp.ReadMapHeaderBytes(raw)
	if err != nil {
		return nil, false
	}
	f = make(Fields, 0, min(int(n), len(rest)/2)+4) // an entry takes two bytes: a length alone costs nothing
	for range n {
		after, err := msgp.Skip(rest)
		if err != nil {
			return nil, false
		}
		key := rest[:len(rest)-len(after)]
		if rest, err = msgp.Skip(after); err != nil {
			return nil, false
		}
		f = append(f, Field{key, after[:len(after)-len(rest)]})
	}
	return f, true
}

// ParseList splits a raw array.
func ParseList(raw []byte) (list [][]byte, ok bool) {
	if msgp.NextType(raw) != msgp.ArrayType {
		return nil, false
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(raw)
	if err != nil {
		return nil, false
	}
	list = make([][]byte, 0, min(int(n), len(rest)))
	for range n {
		after, err := msgp.Skip(rest)
		if err != nil {
			return nil, false
		}
		list = append(list, rest[:len(rest)-len(after)])
		rest = after
	}
	return list, true
}

func (f Fields) indexOf(name string) int {
	for i := range f {
		if msgp.NextType(f[i].Key) != msgp.StrType {
			continue
		}
		if k, _, err := msgp.ReadStringZC(f[i].Key); err == nil && string(k) == name {
			return i
		}
	}
	return -1
}

// Get returns the value of an entry by its name.
func (f Fields) Get(name string) ([]byte, bool) {
	if i := f.indexOf(name); i >= 0 {
		return f[i].Val, true
	}
	return nil, false
}

// Has says whether there is an entry of that name.
func (f Fields) Has(name string) bool { return f.indexOf(name) >= 0 }

// Set puts a raw value under a name.
func (f Fields) Set(name string, val []byte) Fields {
	if i := f.indexOf(name); i >= 0 {
		f[i].Val = val
		return f
	}
	return append(f, Field{saltwire.AppendStr(nil, name), val})
}

// Drop removes an entry and returns its value.
func (f Fields) Drop(name string) (Fields, []byte) {
	i := f.indexOf(name)
	if i < 0 {
		return f, nil
	}
	val := f[i].Val
	return append(f[:i], f[i+1:]...), val
}

// rawSize is what Raw takes, the header included at its largest.
func (f Fields) rawSize() int {
	n := 5
	for i := range f {
		n += len(f[i].Key) + len(f[i].Val)
	}
	return n
}

// Raw is the map in one piece again.
func (f Fields) Raw() []byte {
	out := saltwire.AppendMapHeader(make([]byte, 0, f.rawSize()), len(f))
	for i := range f {
		out = append(append(out, f[i].Key...), f[i].Val...)
	}
	return out
}

// Text returns a raw str. A bin is none.
func Text(raw []byte) (string, bool) {
	if msgp.NextType(raw) != msgp.StrType {
		return "", false
	}
	v, _, err := msgp.ReadStringZC(raw)
	return string(v), err == nil
}

// IsMap says whether a raw value is a dict.
func IsMap(raw []byte) bool { return msgp.NextType(raw) == msgp.MapType }

// IsList says whether a raw value is a list.
func IsList(raw []byte) bool { return msgp.NextType(raw) == msgp.ArrayType }

// Truth is Python's bool() of a raw value.
func Truth(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case 0x00, 0x80, 0x90, 0xa0, 0xc0, 0xc2:
		return false
	case 0xc4:
		return raw[1] != 0
	case 0xcb:
		return !bytes.Equal(raw[1:], make([]byte, 8)) && !bytes.Equal(raw, []byte{0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0})
	}
	return true
}

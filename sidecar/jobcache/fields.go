package jobcache

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// field is an entry of a map, both raw.
type field struct{ key, val []byte }

// fields is a Python dict: in order, and set replaces in place or adds at the end.
type fields []field

// parseLoad decodes a load as it came over the wire.
func parseLoad(load []byte) (fields, error) {
	raw, rest, err := appendDisk(make([]byte, 0, len(load)+len(load)/16+64), load, 0)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, ErrMalformed
	}
	f, ok := parseFields(raw)
	if !ok {
		return nil, ErrMalformed
	}
	return f, nil
}

// parseFields splits a raw map, which is known to be well-formed. ok is false when raw is no map.
func parseFields(raw []byte) (f fields, ok bool) {
	if msgp.NextType(raw) != msgp.MapType {
		return nil, false
	}
	n, rest, err := msgp.ReadMapHeaderBytes(raw)
	if err != nil {
		return nil, false
	}
	f = make(fields, 0, int(n)+4)
	for range n {
		after, err := msgp.Skip(rest)
		if err != nil {
			return nil, false
		}
		key := rest[:len(rest)-len(after)]
		if rest, err = msgp.Skip(after); err != nil {
			return nil, false
		}
		f = append(f, field{key, after[:len(after)-len(rest)]})
	}
	return f, true
}

// parseList splits a raw array.
func parseList(raw []byte) (list [][]byte, ok bool) {
	if msgp.NextType(raw) != msgp.ArrayType {
		return nil, false
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(raw)
	if err != nil {
		return nil, false
	}
	list = make([][]byte, 0, n)
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

func (f fields) index(name string) int {
	for i := range f {
		if msgp.NextType(f[i].key) != msgp.StrType {
			continue
		}
		if k, _, err := msgp.ReadStringZC(f[i].key); err == nil && string(k) == name {
			return i
		}
	}
	return -1
}

func (f fields) get(name string) ([]byte, bool) {
	if i := f.index(name); i >= 0 {
		return f[i].val, true
	}
	return nil, false
}

func (f fields) has(name string) bool { return f.index(name) >= 0 }

func (f fields) set(name string, val []byte) fields {
	if i := f.index(name); i >= 0 {
		f[i].val = val
		return f
	}
	return append(f, field{saltwire.AppendStr(nil, name), val})
}

// drop removes an entry and returns its value.
func (f fields) drop(name string) (fields, []byte) {
	i := f.index(name)
	if i < 0 {
		return f, nil
	}
	val := f[i].val
	return append(f[:i], f[i+1:]...), val
}

// size is what raw takes, the header included at its largest.
func (f fields) size() int {
	n := 5
	for i := range f {
		n += len(f[i].key) + len(f[i].val)
	}
	return n
}

func (f fields) raw() []byte {
	out := saltwire.AppendMapHeader(make([]byte, 0, f.size()), len(f))
	for i := range f {
		out = append(append(out, f[i].key...), f[i].val...)
	}
	return out
}

// text returns a raw str. A bin is none.
func text(raw []byte) (string, bool) {
	if msgp.NextType(raw) != msgp.StrType {
		return "", false
	}
	v, _, err := msgp.ReadStringZC(raw)
	return string(v), err == nil
}

var rawFalse, rawNil = []byte{0xc2}, []byte{0xc0}

func isMap(raw []byte) bool { return msgp.NextType(raw) == msgp.MapType }

func isList(raw []byte) bool { return msgp.NextType(raw) == msgp.ArrayType }

// truth is Python's bool() of a raw value.
func truth(raw []byte) bool {
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

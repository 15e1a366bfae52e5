package msgpack

import (
	"encoding/binary"
	"errors"
)

// ErrFormat says that bytes are not the msgpack they should be.
var ErrFormat = errors.New("not a msgpack map as Salt writes it")

// maxOpen bounds the values still to come while a value is skipped: no input opens more than it has bytes for.
const maxOpen = 1 << 31

// skipValue returns what follows the first value of b. It needs neither recursion nor memory.
func skipValue(b []byte) ([]byte, error) {
	for todo := uint64(1); todo > 0; todo-- {
		size, children, err := head(b)
		if err != nil || size > uint64(len(b)) {
			return nil, ErrFormat
		}
		b = b[size:]
		if todo += children; todo > maxOpen || todo-1 > uint64(len(b)) {
			return nil, ErrFormat
		}
	}
	return b, nil
}

// head returns how many bytes the first value of b takes without its children, and how many children follow.
func head(b []byte) (size, children uint64, err error) {
	if len(b) == 0 {
		return 0, 0, ErrFormat
	}
	c := b[0]
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, 0, nil
	case c <= 0x8f:
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f:
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf:
		return 1 + uint64(c&0x1f), 0, nil
	}
	form, ok := forms[c]
	if !ok || len(b) < 1+form.width {
		return 0, 0, ErrFormat
	}
	n := number(b[1 : 1+form.width])
	return 1 + uint64(form.width) + form.fixed + n*form.bytes, n * form.children, nil
}

// form describes what follows a type byte: a number of so many bytes, fixed bytes, and bytes or children per number.
type form struct {
	width                  int
	fixed, bytes, children uint64
}

var forms = map[byte]form{
	0xc4: {width: 1, bytes: 1}, 0xc5: {width: 2, bytes: 1}, 0xc6: {width: 4, bytes: 1}, // bin
	// ext
	0xc7: {width: 1, fixed: 1, bytes: 1}, 0xc8: {width: 2, fixed: 1, bytes: 1}, 0xc9: {width: 4, fixed: 1, bytes: 1},
	0xca: {fixed: 4}, 0xcb: {fixed: 8}, // float
	0xcc: {fixed: 1}, 0xcd: {fixed: 2}, 0xce: {fixed: 4}, 0xcf: {fixed: 8}, // uint
	0xd0: {fixed: 1}, 0xd1: {fixed: 2}, 0xd2: {fixed: 4}, 0xd3: {fixed: 8}, // int
	0xd4: {fixed: 2}, 0xd5: {fixed: 3}, 0xd6: {fixed: 5}, 0xd7: {fixed: 9}, 0xd8: {fixed: 17}, // fixext
	0xd9: {width: 1, bytes: 1}, 0xda: {width: 2, bytes: 1}, 0xdb: {width: 4, bytes: 1}, // str
	0xdc: {width: 2, children: 1}, 0xdd: {width: 4, children: 1}, // array
	0xde: {width: 2, children: 2}, 0xdf: {width: 4, children: 2}, // map
}

func number(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return 0
}

// WholeMap says whether b is exactly one map.
func WholeMap(b []byte) bool {
	if !isMap(b) {
		return false
	}
	rest, err := skipValue(b)
	return err == nil && len(rest) == 0
}

func isMap(b []byte) bool { return len(b) > 0 && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf) }

// Len returns how many entries the map at the start of b says it has; 0 when there is none.
func Len(b []byte) uint64 {
	if !isMap(b) {
		return 0
	}
	_, children, _ := head(b)
	return children / 2
}

// Entries calls visit with each key and value of the map b. Keys that are not text are passed as they are encoded.
func Entries(b []byte, visit func(key string, value []byte)) error {
	if !WholeMap(b) {
		return ErrFormat
	}
	size, children, _ := head(b)
	for b = b[size:]; children > 0; children -= 2 {
		afterKey, err := skipValue(b)
		if err != nil {
			return err
		}
		rest, err := skipValue(afterKey)
		if err != nil {
			return err
		}
		visit(Text(b[:len(b)-len(afterKey)]), afterKey[:len(afterKey)-len(rest)])
		b = rest
	}
	return nil
}

// Text returns the content of a string in any of its forms.
func Text(v []byte) string {
	if v[0]&0xe0 == 0xa0 {
		return string(v[1:])
	}
	switch v[0] {
	case 0xd9, 0xc4:
		return string(v[2:])
	case 0xda, 0xc5:
		return string(v[3:])
	case 0xdb, 0xc6:
		return string(v[5:])
	}
	return string(v)
}

// AppendShort appends a text of up to 31 bytes.
func AppendShort(dst []byte, s string) []byte {
	return append(append(dst, 0xa0|byte(len(s))), s...)
}

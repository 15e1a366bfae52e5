package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed says that bytes are not the encoding of an object.
var ErrMalformed = errors.New("malformed object")

// DecodeDir reads a directory; only what EncodeDir writes is accepted.
func DecodeDir(b []byte) ([]Entry, error) {
	r := &reader{b: b}
	r.magic(dirMagic)
	n := r.count(MaxEntries, 4)
	entries := make([]Entry, 0, n)
	for range n {
		e := r.entry()
		if r.err != nil {
			break
		}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if k := len(entries); k > 0 && entries[k-1].Name >= e.Name {
			return nil, fmt.Errorf("%w: names out of order", ErrMalformed)
		}
		entries = append(entries, e)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return entries, nil
}

// DecodeRoot reads a root; only what EncodeRoot writes is accepted.
func DecodeRoot(b []byte) (Root, error) {
	r := &reader{b: b}
	r.magic(rootMagic)
	n := r.count(maxSlots, 33)
	root := make(Root, n)
	var last Slot
	for i := range n {
		slot, err := ParseSlot(r.text(maxEnv + 32))
		if r.err == nil && err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if i > 0 && last.Compare(slot) >= 0 && r.err == nil {
			return nil, fmt.Errorf("%w: slots out of order", ErrMalformed)
		}
		root[slot], last = r.hash(), slot
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return root, nil
}

// reader takes an encoding apart; after the first mistake it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = ErrMalformed
	}
	r.b = nil
}

func (r *reader) magic(m string) {
	if string(r.take(len(m))) != m {
		r.fail()
	}
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// uvarint reads a number in its shortest form.
func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many items follow, each of at least size bytes.
func (r *reader) count(most, size int) int {
	v := r.uvarint()
	if v > uint64(most) || v*uint64(size) > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) text(most int) string { return string(r.take(r.count(most, 1))) }

func (r *reader) hash() (h Hash) {
	copy(h[:], r.take(len(h)))
	return h
}

func (r *reader) entry() Entry {
	var e Entry
	if t := r.take(1); len(t) == 1 {
		e.Type = Type(t[0])
	}
	if mode := r.uvarint(); mode <= 0o777 {
		e.Mode = uint16(mode)
	} else {
		r.fail()
	}
	e.Name = r.text(MaxName)
	switch e.Type {
	case File:
		e.Chunks = r.chunks()
	case Dir:
		e.Object = r.hash()
	case Symlink:
		e.Target = r.text(MaxTarget)
	default:
		r.fail()
	}
	return e
}

// maxChunks is more than any file has that is cut the way we cut, or by a later version in smaller pieces.
const maxChunks = 65536

func (r *reader) chunks() []Chunk {
	n := r.count(maxChunks, 33)
	if n == 0 {
		return nil
	}
	out := make([]Chunk, n)
	for i := range out {
		out[i].Hash = r.hash()
		size := r.uvarint()
		if size == 0 || size > MaxChunk {
			r.fail()
			return nil
		}
		out[i].Size = uint32(size)
	}
	return out
}

func (r *reader) end() error {
	if r.err != nil {
		return r.err
	}
	if len(r.b) > 0 {
		return fmt.Errorf("%w: bytes at the end", ErrMalformed)
	}
	return nil
}

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
	r.readMagic(dirMagic)
	n := r.readCount(MaxEntries, 4)
	entries := make([]Entry, 0, n)
	for range n {
		e := r.readEntry()
		if r.err != nil {
			break
		}
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if k := len(entries); k > 0 && entries[k-1].Name >= e.Name {
			return nil, fmt.Errorf("%w: names out of order", ErrMalformed)
		}
		entries = append(entries, e)
	}
	if err := r.checkEnd(); err != nil {
		return nil, err
	}
	return entries, nil
}

// DecodeRoot reads a root; only what EncodeRoot writes is accepted.
func DecodeRoot(b []byte) (Root, error) {
	r := &reader{b: b}
	r.readMagic(rootMagic)
	n := r.readCount(maxSlots, 33)
	root := make(Root, n)
	var last Slot
	for i := range n {
		slot, err := ParseSlot(r.readText(maxEnv + 32))
		if r.err == nil && err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if i > 0 && last.Compare(slot) >= 0 && r.err == nil {
			return nil, fmt.Errorf("%w: slots out of order", ErrMalformed)
		}
		root[slot], last = r.readHash(), slot
	}
	if err := r.checkEnd(); err != nil {
		return nil, err
	}
	return root, nil
}

// reader takes an encoding apart; after the first mistake it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) setMalformed() {
	if r.err == nil {
		r.err = ErrMalformed
	}
	r.b = nil
}

func (r *reader) readMagic(m string) {
	if string(r.readBytes(len(m))) != m {
		r.setMalformed()
	}
}

func (r *reader) readBytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.setMalformed()
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// readUvarint reads a number in its shortest form.
func (r *reader) readUvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.setMalformed()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// readCount reads how many items follow, each of at least size bytes.
func (r *reader) readCount(most, size int) int {
	v := r.readUvarint()
	if v > uint64(most) || v*uint64(size) > uint64(len(r.b)) {
		r.setMalformed()
		return 0
	}
	return int(v)
}

func (r *reader) readText(most int) string { return string(r.readBytes(r.readCount(most, 1))) }

func (r *reader) readHash() (h Hash) {
	copy(h[:], r.readBytes(len(h)))
	return h
}

func (r *reader) readEntry() Entry {
	var e Entry
	if t := r.readBytes(1); len(t) == 1 {
		e.Type = Type(t[0])
	}
	if mode := r.readUvarint(); mode <= 0o777 {
		e.Mode = uint16(mode)
	} else {
		r.setMalformed()
	}
	e.Name = r.readText(MaxName)
	switch e.Type {
	case File:
		e.Chunks = r.readChunks()
	case Dir:
		e.Object = r.readHash()
	case Symlink:
		e.Target = r.readText(MaxTarget)
	default:
		r.setMalformed()
	}
	return e
}

// maxChunks is more than any file has that is cut the way we cut, or by a later version in smaller pieces.
const maxChunks = 65536

func (r *reader) readChunks() []Chunk {
	n := r.readCount(maxChunks, 33)
	if n == 0 {
		return nil
	}
	out := make([]Chunk, n)
	for i := range out {
		out[i].Hash = r.readHash()
		size := r.readUvarint()
		if size == 0 || size > MaxChunk {
			r.setMalformed()
			return nil
		}
		out[i].Size = uint32(size)
	}
	return out
}

func (r *reader) checkEnd() error {
	if r.err != nil {
		return r.err
	}
	if len(r.b) > 0 {
		return fmt.Errorf("%w: bytes at the end", ErrMalformed)
	}
	return nil
}

package tree

import (
	"errors"
	"fmt"
)

// Objects returns the encoding of objects. It need not verify them.
type Objects interface {
	Object(Hash) ([]byte, error)
}

// ErrNoObject says that an object is not there.
var ErrNoObject = errors.New("object not found")

// Memory holds objects in memory.
type Memory map[Hash][]byte

// Object implements Objects.
func (m Memory) Object(h Hash) ([]byte, error) {
	if b, ok := m[h]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNoObject, h.Short())
}

// PutDir adds a directory.
func (m Memory) PutDir(entries []Entry) (Hash, error) {
	b, err := EncodeDir(entries)
	if err != nil {
		return Hash{}, err
	}
	h := Sum(b)
	m[h] = b
	return h, nil
}

// PutRoot adds a root.
func (m Memory) PutRoot(r Root) (Hash, error) {
	b, err := EncodeRoot(r)
	if err != nil {
		return Hash{}, err
	}
	h := Sum(b)
	m[h] = b
	return h, nil
}

// Both looks into one after the other.
type Both struct{ First, Second Objects }

// Object implements Objects.
func (b Both) Object(h Hash) ([]byte, error) {
	if o, err := b.First.Object(h); err == nil {
		return o, nil
	}
	return b.Second.Object(h)
}

// ReadDir returns the entries of a directory; the zero hash is one without entries.
func ReadDir(o Objects, h Hash) ([]Entry, error) {
	if h.IsZero() {
		return nil, nil
	}
	b, err := o.Object(h)
	if err != nil {
		return nil, err
	}
	return DecodeDir(b)
}

// ReadRoot returns the slots of a root; the zero hash is one without slots.
func ReadRoot(o Objects, h Hash) (Root, error) {
	if h.IsZero() {
		return Root{}, nil
	}
	b, err := o.Object(h)
	if err != nil {
		return nil, err
	}
	return DecodeRoot(b)
}

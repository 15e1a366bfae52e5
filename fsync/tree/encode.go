package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The first bytes of objects: what they are, and the version of the encoding.
const (
	dirMagic  = "SCD\x01"
	rootMagic = "SCR\x01"
)

// EncodeDir writes a directory. The entries are sorted in place by name.
func EncodeDir(entries []Entry) ([]byte, error) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	size := len(dirMagic) + binary.MaxVarintLen64
	for i := range entries {
		size += len(entries[i].Name) + len(entries[i].Target) + 44 + 36*len(entries[i].Chunks)
	}
	b := append(make([]byte, 0, size), dirMagic...)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for i := range entries {
		e := &entries[i]
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("encode directory: %w", err)
		}
		if i > 0 && entries[i-1].Name == e.Name {
			return nil, fmt.Errorf("encode directory: %q twice", e.Name)
		}
		b = e.appendTo(b)
	}
	if len(entries) > MaxEntries || len(b) > MaxObject {
		return nil, fmt.Errorf("encode directory: %w: %d entries", ErrTooLarge, len(entries))
	}
	return b, nil
}

// ErrTooLarge says that a directory or a tree has more entries than we handle.
var ErrTooLarge = errors.New("too large")

func (e *Entry) appendTo(b []byte) []byte {
	b = append(b, byte(e.Type))
	b = binary.AppendUvarint(b, uint64(e.Mode))
	b = appendText(b, e.Name)
	switch e.Type {
	case File:
		b = binary.AppendUvarint(b, uint64(len(e.Chunks)))
		for _, c := range e.Chunks {
			b = append(b, c.Hash[:]...)
			b = binary.AppendUvarint(b, uint64(c.Size))
		}
	case Dir:
		b = append(b, e.Object[:]...)
	case Symlink:
		b = appendText(b, e.Target)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Root maps the slots of a cluster to the objects of their directories.
type Root map[Slot]Hash

// EncodeRoot writes a root.
func EncodeRoot(r Root) ([]byte, error) {
	b := append([]byte(nil), rootMagic...)
	b = binary.AppendUvarint(b, uint64(len(r)))
	for _, slot := range r.Slots() {
		if !slot.Valid() {
			return nil, fmt.Errorf("encode root: bad slot %q", slot)
		}
		h := r[slot]
		b = append(appendText(b, slot.String()), h[:]...)
	}
	if len(r) > maxSlots {
		return nil, fmt.Errorf("encode root: %w: %d slots", ErrTooLarge, len(r))
	}
	return b, nil
}

// maxSlots bounds the slots of a root.
const maxSlots = 4096

// Slots lists the slots in order.
func (r Root) Slots() []Slot {
	out := make([]Slot, 0, len(r))
	for s := range r {
		out = append(out, s)
	}
	slices.SortFunc(out, Slot.Compare)
	return out
}

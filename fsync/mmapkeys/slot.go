package mmapkeys

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

const (
	slotEmpty    = 0
	slotOccupied = 1
	slotDeleted  = 2

	headerMagic = 0xAB

	// tombstone stands in the roster for a slot that is not in use any more.
	tombstone = 0xFFFFFFFF
	// sumSize is how much longer a heap record is than its value.
	sumSize = 8

	segmentShift = 48
	offsetMask   = 1<<segmentShift - 1
)

// pointer says where a value lies in the heap.
type pointer struct {
	packed uint64
	length uint32
	mtime  uint64 // unix nanoseconds
}

func (p pointer) segment() int  { return int(p.packed >> segmentShift) }
func (p pointer) offset() int64 { return int64(p.packed & offsetMask) }

func packPointer(segment int, offset int64) uint64 {
	return uint64(segment)<<segmentShift | uint64(offset)&offsetMask
}

// slot is one data slot of the index.
type slot struct {
	status byte
	key    string
	at     pointer
}

func (g Geometry) decodeSlot(b []byte) slot {
	key := b[1 : 1+g.KeySize]
	if i := bytes.IndexByte(key, 0); i >= 0 {
		key = key[:i]
	}
	at := b[1+g.KeySize:]
	return slot{status: b[0], key: string(key), at: pointer{
		packed: binary.LittleEndian.Uint64(at), length: binary.LittleEndian.Uint32(at[8:]),
		mtime: binary.LittleEndian.Uint64(at[12:]),
	}}
}

// appendPointer appends what follows the key in a slot.
func appendPointer(b []byte, p pointer) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.packed)
	b = binary.LittleEndian.AppendUint32(b, p.length)
	return binary.LittleEndian.AppendUint64(b, p.mtime)
}

// homeSlot is the slot where the search for a key begins.
func (g Geometry) homeSlot(key string) uint32 {
	return uint32(xxh3.HashString(key)%uint64(g.Slots-1)) + 1
}

// nextSlot is the slot after s in the order of a search.
func (g Geometry) nextSlot(s uint32) uint32 {
	if int(s) == g.Slots-1 {
		return 1
	}
	return s + 1
}

// appendRecord appends what the heap holds for a value.
func appendRecord(b, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return append(binary.LittleEndian.AppendUint64(b, xxh3.Hash(value)), value...)
}

// header is what slot 0 holds.
type header struct{ occupied, deleted, high uint64 }

func decodeHeader(b []byte) header {
	return header{
		binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:]), binary.LittleEndian.Uint64(b[17:]),
	}
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, minHeader), headerMagic)
	b = binary.LittleEndian.AppendUint64(b, h.occupied)
	b = binary.LittleEndian.AppendUint64(b, h.deleted)
	return binary.LittleEndian.AppendUint64(b, h.high)
}

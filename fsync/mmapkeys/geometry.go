package mmapkeys

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// What a call can fail with.
var (
	// ErrGeometry: the index is not of the size that the master's configuration gives it. Salt refuses it as well.
	ErrGeometry = errors.New("mmapkeys: the index has another size than the master is configured for")
	// ErrFormat: the files are not what Salt makes.
	ErrFormat = errors.New("mmapkeys: not a key store of Salt")
	// ErrFull: the table has no free slot.
	ErrFull = errors.New("mmapkeys: the key store is full")
	// ErrTooLong: the key does not fit into its field, and Salt would cut it.
	ErrTooLong = errors.New("mmapkeys: the minion id is longer than mmap_key_id_size")
	// ErrChanged: the entry is not any more what the change was based on.
	ErrChanged = errors.New("mmapkeys: the entry has changed in the meantime")
	// ErrLocked: another process has kept the lock for longer than the context allows.
	ErrLocked = errors.New("mmapkeys: the key store stays locked by another process")
)

// Settle is how long workers of Salt may continue to use what they have mapped.
const Settle = 300 * time.Millisecond

// Geometry is how a store is laid out.
type Geometry struct {
	Slots    int // in the index, the header included (mmap_key_size)
	SlotSize int // bytes (mmap_key_slot_size)
	KeySize  int // bytes of the key's field (mmap_key_id_size)
}

// Configured is the geometry of a master with these options (mmap_key_…); zero: as Salt has it by default.
func Configured(option func(name string) int) Geometry {
	g := DefaultGeometry()
	return Geometry{
		Slots: cmp.Or(option("mmap_key_size"), g.Slots), SlotSize: cmp.Or(option("mmap_key_slot_size"), g.SlotSize),
		KeySize: cmp.Or(option("mmap_key_id_size"), g.KeySize),
	}
}

// DefaultGeometry is what Salt uses when nothing is configured.
func DefaultGeometry() Geometry { return Geometry{Slots: 1_000_000, SlotSize: 96, KeySize: 64} }

const (
	minHeader = 25
	// fixedSlot is a data slot without its key.
	fixedSlot   = 21
	maxSlots    = 1 << 28
	maxSlotSize = 1 << 12
)

// Validate refuses what Salt refuses, and sizes that can only be a mistake.
func (g Geometry) Validate() error {
	switch {
	case g.Slots < 2 || g.Slots > maxSlots:
		return fmt.Errorf("%w: mmap_key_size %d", ErrGeometry, g.Slots)
	case g.KeySize < 1 || g.SlotSize > maxSlotSize || g.SlotSize < max(fixedSlot+g.KeySize, minHeader):
		return fmt.Errorf("%w: mmap_key_slot_size %d with mmap_key_id_size %d", ErrGeometry, g.SlotSize, g.KeySize)
	}
	return nil
}

func (g Geometry) indexSize() int64 { return int64(g.Slots) * int64(g.SlotSize) }

func (g Geometry) slotOffset(slot uint32) int64 { return int64(slot) * int64(g.SlotSize) }

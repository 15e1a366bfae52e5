package mmapkeys

import (
	"encoding/binary"
	"errors"
	"time"
)

// writer changes a table under its lock.
type writer struct {
	*table
	head   header
	roster rosterList
	end    int64 // of the roster
	now    func() time.Time
}

func newWriter(t *table) (*writer, error) {
	w := &writer{table: t, now: time.Now}
	var err error
	if w.head, err = t.readHeader(); err != nil {
		return nil, err
	}
	if w.roster, err = t.readRoster(); err != nil {
		return nil, err
	}
	w.end = t.rostered &^ 3
	if uint64(len(w.roster.slots)) != w.head.occupied || w.roster.wrong {
		return w, w.repairFiles()
	}
	return w, nil
}

// findKey returns the slot that has the key, or else the one where it would go; 0 when there is none.
func (t *table) findKey(key string) (at uint32, have slot, found bool, err error) {
	g := t.b.g
	buf := make([]byte, g.SlotSize)
	free := uint32(0)
	n := g.homeSlot(key)
	for range g.Slots - 1 {
		if _, err := t.index.ReadAt(buf, g.slotOffset(n)); err != nil {
			return 0, slot{}, false, err
		}
		switch buf[0] {
		case slotOccupied:
			if s := g.decodeSlot(buf); s.key == key {
				return n, s, true, nil
			}
		case slotDeleted:
			if free == 0 {
				free = n
			}
		default:
			if free == 0 {
				free = n
			}
			return free, slot{}, false, nil
		}
		n = g.nextSlot(n)
	}
	return free, slot{}, false, nil
}

func (w *writer) changeEntry(c *Change) error {
	if c.Key == "" || len(c.Key) > w.b.g.KeySize {
		return ErrTooLong
	}
	at, have, found, err := w.findKey(c.Key)
	if err != nil {
		return err
	}
	switch {
	case c.Base != nil && (found != (c.Base.Key != "") || found && !c.Base.inSlot(have)):
		return ErrChanged
	case len(c.Value) == 0 && !found:
		return nil
	case len(c.Value) == 0:
		return w.removeEntry(at)
	case found:
		return w.replaceValue(at, have, c)
	case at == 0:
		return ErrFull
	}
	return w.insertEntry(at, c)
}

// replaceValue writes a value over the old one where it fits, as Salt does: readers see it without mapping the heap
// anew.
func (w *writer) replaceValue(at uint32, have slot, c *Change) error {
	p := pointer{packed: have.at.packed, length: uint32(len(c.Value)), mtime: uint64(w.now().UnixNano())}
	if int(have.at.length) >= len(c.Value) && w.hasRoom(have.at, int64(have.at.length)) {
		if _, err := w.segments[p.segment()].WriteAt(appendRecord(nil, c.Value), p.offset()); err != nil {
			return err
		}
	} else if err := w.appendValue(&p, c.Value); err != nil {
		return err
	}
	if _, err := w.index.WriteAt(appendPointer(nil, p), w.b.g.slotOffset(at)+1+int64(w.b.g.KeySize)); err != nil {
		return err
	}
	c.setAfter(at, p)
	if _, listed := w.roster.slots[at]; listed == c.Hidden {
		return w.setListed(at, !c.Hidden)
	}
	return nil
}

func (w *writer) insertEntry(at uint32, c *Change) error {
	p := pointer{length: uint32(len(c.Value)), mtime: uint64(w.now().UnixNano())}
	if err := w.appendValue(&p, c.Value); err != nil {
		return err
	}
	b := make([]byte, 1+w.b.g.KeySize, w.b.g.SlotSize)
	was := b[:1:1]
	if _, err := w.index.ReadAt(was, w.b.g.slotOffset(at)); err != nil {
		return err
	}
	if was[0] == slotDeleted {
		w.head.deleted -= min(1, w.head.deleted)
	}
	b[0] = slotOccupied
	copy(b[1:], c.Key)
	b = appendPointer(b, p)
	if _, err := w.index.WriteAt(b[1:], w.b.g.slotOffset(at)+1); err != nil {
		return err
	}
	if _, err := w.index.WriteAt(b[:1], w.b.g.slotOffset(at)); err != nil {
		return err
	}
	c.setAfter(at, p)
	w.head.high = max(w.head.high, uint64(at))
	if c.Hidden {
		return w.saveHeader()
	}
	return w.setListed(at, true)
}

// setAfter notes what there is now.
func (c *Change) setAfter(at uint32, p pointer) {
	c.After = Entry{Key: c.Key, Value: c.Value, Listed: !c.Hidden, MTime: time.Unix(0, int64(p.mtime)), slot: at, at: p}
}

func (w *writer) removeEntry(at uint32) error {
	if _, err := w.index.WriteAt([]byte{slotDeleted}, w.b.g.slotOffset(at)); err != nil {
		return err
	}
	w.head.deleted++
	if _, listed := w.roster.slots[at]; listed {
		return w.setListed(at, false)
	}
	return w.saveHeader()
}

// setListed puts a slot on the roster or takes it off.
func (w *writer) setListed(at uint32, on bool) error {
	place, word := w.end, binary.LittleEndian.AppendUint32(nil, at)
	if on {
		w.head.occupied++
		w.roster.slots[at] = place
		w.end += 4
	} else {
		place = w.roster.slots[at]
		delete(w.roster.slots, at)
		w.head.occupied -= min(1, w.head.occupied)
		word = binary.LittleEndian.AppendUint32(nil, tombstone)
	}
	if err := w.saveHeader(); err != nil {
		return err
	}
	_, err := w.table.roster.WriteAt(word, place)
	return err
}

func (w *writer) saveHeader() error {
	_, err := w.index.WriteAt(w.head.encode(), 0)
	return err
}

// appendValue writes a value behind all others.
func (w *writer) appendValue(p *pointer, value []byte) error {
	last := len(w.segments) - 1
	record := appendRecord(nil, value)
	if _, err := w.segments[last].WriteAt(record, w.sizes[last]); err != nil {
		_ = w.segments[last].Truncate(w.sizes[last]) // or Salt would count half a record; what is left of it is harmless
		return err
	}
	p.packed = packPointer(last, w.sizes[last])
	w.sizes[last] += int64(len(record))
	return nil
}

// syncFiles makes all changes durable, what is pointed at first.
func (w *writer) syncFiles() error {
	return errors.Join(w.segments[len(w.segments)-1].Sync(), w.table.roster.Sync(), w.index.Sync())
}

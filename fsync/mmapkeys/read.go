package mmapkeys

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is one key and its value.
type Entry struct {
	Key    string
	Value  []byte // nil when Damaged
	Listed bool
	// Damaged says that the value is not what was written, or longer than any key.
	Damaged bool
	MTime   time.Time

	slot uint32
	at   pointer
}

// inSlot says whether e is still what it was, without its value.
func (e Entry) inSlot(s slot) bool { return e.Key == s.key && e.at == s.at }

// Same reports whether the entry has not been written between two reads.
func (e Entry) Same(o Entry) bool { return e.Key == o.Key && e.slot == o.slot && e.at == o.at }

// Content is what a bank holds.
type Content struct {
	Mark    Mark
	Exists  bool
	Entries map[string]Entry
	// Inconsistent says that roster and index contradict each other. So they do after a crash, and after a process of Salt
	// has deleted what it has put itself: it writes the tombstone to the end of the roster (3008.3). Two of its processes
	// that write in one tick of the clock can also lose entries of the roster, and have counted them all the same: only a
	// thorough look finds that. Repair puts it right.
	Inconsistent bool
	// Holes says that the roster has slots that were never used, or hold nothing that anybody has written: pages of the
	// index are lost, as after a power failure. A slot that was in use never becomes an unused one again.
	Holes bool
	// Short says that values lie behind the end of the heap: it has lost its end. The next value would be put where they
	// were.
	Short bool
	// Fill is how much of the table is in use or was, from 0 to 1.
	Fill float64
	// High and Heap never become less while the bank is the same one.
	High uint64 // the highest slot ever used
	Heap int64  // bytes
}

// Wrote notes what Apply has made of an entry, without a look at the bank.
func (c *Content) Wrote(e Entry) { c.High = max(c.High, uint64(e.slot)) }

// whole is the share of the slots from which on the index is read from end to end.
const whole = 64

// Read returns what is in the bank. What before holds already is not read from the heap again. With thorough, it also
// finds entries that are not listed; a bank whose roster contradicts its header is always looked at thoroughly.
func (b *Bank) Read(ctx context.Context, before map[string]Entry, thorough bool) (Content, error) {
	if b.Mark().Identity() == "" {
		return Content{}, nil
	}
	lock, err := b.takeLock(ctx, unix.LOCK_SH)
	if err != nil {
		return Content{}, err
	}
	defer lock.Close()
	t, err := b.openTable(unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, nil
	}
	if err != nil {
		return Content{}, wrapError("read", err)
	}
	defer t.close()
	c := Content{Mark: b.Mark(), Exists: true}
	if err := t.readContent(&c, before, thorough); err != nil {
		return Content{}, wrapError("read", err)
	}
	return c, nil
}

func (t *table) readContent(c *Content, before map[string]Entry, thorough bool) error {
	h, err := t.readHeader()
	if err != nil {
		return err
	}
	roster, err := t.readRoster()
	if err != nil {
		return err
	}
	c.Fill = float64(h.occupied+h.deleted) / float64(t.b.g.Slots-1)
	c.High = h.high
	for _, n := range t.sizes {
		c.Heap += n
	}
	c.Inconsistent = uint64(len(roster.slots)) != h.occupied || roster.wrong
	var found []Entry
	if thorough || c.Inconsistent || len(roster.slots) > t.b.g.Slots/whole {
		found, c.Holes, err = t.scanIndex(roster.slots)
	} else {
		found, c.Holes, err = t.readSlots(roster.slots)
	}
	if err != nil {
		return err
	}
	c.Entries = make(map[string]Entry, len(found))
	listed := 0
	for _, e := range found {
		if e.Listed {
			listed++
		}
		c.Short = c.Short || t.isBehindEnd(e.at)
		c.Inconsistent = c.Inconsistent || e.Listed == isHidden(e.Key)
		if old, ok := before[e.Key]; ok && old.at == e.at {
			e.Value, e.Damaged = old.Value, old.Damaged
		} else {
			e.Value, e.Damaged = t.readValue(e.at)
		}
		c.Entries[e.Key] = e
	}
	c.Inconsistent = c.Inconsistent || listed != len(roster.slots)
	return nil
}

func (t *table) readHeader() (header, error) {
	b := make([]byte, minHeader)
	if _, err := t.index.ReadAt(b, 0); err != nil {
		return header{}, err
	}
	switch b[0] {
	case headerMagic:
		return decodeHeader(b), nil
	case 0: // made, but not yet used
		return header{}, nil
	}
	return header{}, ErrFormat
}

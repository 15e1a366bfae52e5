package mmapkeys

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
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

// same says whether e is still what it was, without its value.
func (e Entry) same(s slot) bool { return e.Key == s.key && e.at == s.at }

// Same says whether nobody has written the entry between two reads.
func (e Entry) Same(o Entry) bool { return e.Key == o.Key && e.slot == o.slot && e.at == o.at }

// Content is what a bank holds.
type Content struct {
	Mark    Mark
	Exists  bool
	Entries map[string]Entry
	// Crooked says that roster and index contradict each other. So they do after a crash, and after a process of Salt has deleted
	// what it has put itself: it writes the tombstone to the end of the roster (3008.3). Repair puts it right.
	Crooked bool
	// Fill is how much of the table is in use or was, from 0 to 1.
	Fill float64
	// High and Heap never become less while the bank is the same one.
	High uint64 // the highest slot ever used
	Heap int64  // bytes
}

// whole is the share of the slots from which on the index is read from end to end.
const whole = 64

// Read returns what is in the bank. What before holds already is not read from the heap again. With thorough, entries that are not
// listed are found, too; a bank whose roster contradicts its header is always looked at thoroughly.
func (b *Bank) Read(ctx context.Context, before map[string]Entry, thorough bool) (Content, error) {
	if b.Mark().Identity() == "" {
		return Content{}, nil
	}
	lock, err := b.lock(ctx, unix.LOCK_SH)
	if err != nil {
		return Content{}, err
	}
	defer lock.Close()
	t, err := b.openTable(unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, nil
	}
	if err != nil {
		return Content{}, wrap("read", err)
	}
	defer t.close()
	c := Content{Mark: b.Mark(), Exists: true}
	if err := t.read(&c, before, thorough); err != nil {
		return Content{}, wrap("read", err)
	}
	return c, nil
}

// Get returns one entry, whether it is listed or not, as the master finds it; ok is false when there is none.
func (b *Bank) Get(ctx context.Context, key string) (e Entry, ok bool, err error) {
	if b.Mark().Identity() == "" || len(key) > b.g.KeySize {
		return Entry{}, false, nil
	}
	lock, err := b.lock(ctx, unix.LOCK_SH)
	if err != nil {
		return Entry{}, false, err
	}
	defer lock.Close()
	t, err := b.openTable(unix.O_RDONLY)
	if err != nil {
		return Entry{}, false, wrap("read", err)
	}
	defer t.close()
	n, s, found, err := t.find(key)
	if err != nil || !found {
		return Entry{}, false, wrap("read", err)
	}
	e = Entry{Key: s.key, MTime: time.Unix(0, int64(s.at.mtime)), slot: n, at: s.at}
	e.Value, e.Damaged = t.value(s.at)
	if roster, rerr := t.readRoster(); rerr == nil {
		_, e.Listed = roster.slots[n]
	}
	return e, true, nil
}

func (t *table) read(c *Content, before map[string]Entry, thorough bool) error {
	h, err := t.header()
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
	c.Crooked = uint64(len(roster.slots)) != h.occupied || roster.wrong
	var found []Entry
	if thorough || c.Crooked || len(roster.slots) > t.b.g.Slots/whole {
		found, err = t.scan(roster.slots)
	} else {
		found, err = t.pick(roster.slots)
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
		if old, ok := before[e.Key]; ok && old.at == e.at {
			e.Value, e.Damaged = old.Value, old.Damaged
		} else {
			e.Value, e.Damaged = t.value(e.at)
		}
		c.Entries[e.Key] = e
	}
	c.Crooked = c.Crooked || listed != len(roster.slots)
	return nil
}

func (t *table) header() (header, error) {
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

const (
	// maxRoster: a roster only grows, by four bytes for each key that was ever added.
	maxRoster = 1 << 30
	maxExtra  = 1 << 20
)

// rosterList is what the roster says.
type rosterList struct {
	slots map[uint32]int64 // in use, with the place in the roster
	extra []int64          // places that are to be tombstones
	wrong bool
}

func (t *table) readRoster() (rosterList, error) {
	r := rosterList{slots: map[uint32]int64{}}
	if t.roster == nil {
		return r, nil
	}
	if t.rostered > maxRoster {
		return r, fmt.Errorf("%w: a roster of %d bytes", ErrFormat, t.rostered)
	}
	in := io.NewSectionReader(t.roster, 0, t.rostered)
	buf := make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, buf)
		for i := 0; i+4 <= n; i, at = i+4, at+4 {
			r.add(t.b.g, binary.LittleEndian.Uint32(buf[i:]), at)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
	}
}

func (r *rosterList) add(g Geometry, s uint32, at int64) {
	_, twice := r.slots[s]
	switch {
	case s == tombstone:
	case s == 0, int64(s) >= int64(g.Slots), twice:
		if r.wrong = true; len(r.extra) < maxExtra { // what is left is found after the next repair
			r.extra = append(r.extra, at)
		}
	default:
		r.slots[s] = at
	}
}

// pick reads single slots.
func (t *table) pick(listed map[uint32]int64) ([]Entry, error) {
	var out []Entry
	buf := make([]byte, t.b.g.SlotSize)
	for _, n := range sorted(listed) {
		if _, err := t.index.ReadAt(buf, t.b.g.offset(n)); err != nil {
			return nil, err
		}
		if e, ok := t.b.g.entry(buf, n); ok {
			e.Listed = true
			out = append(out, e)
		}
	}
	return out, nil
}

func sorted(m map[uint32]int64) []uint32 {
	out := make([]uint32, 0, len(m))
	for s := range m {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// scan reads the whole index.
func (t *table) scan(listed map[uint32]int64) ([]Entry, error) {
	var out []Entry
	size := t.b.g.SlotSize
	buf := make([]byte, max(1, 256<<10/size)*size)
	in := io.NewSectionReader(t.index, int64(size), t.b.g.indexSize()-int64(size))
	for n := uint32(1); ; {
		got, err := io.ReadFull(in, buf)
		for at := 0; at+size <= got; at, n = at+size, n+1 {
			if buf[at] != slotOccupied {
				continue
			}
			if e, ok := t.b.g.entry(buf[at:at+size], n); ok {
				_, e.Listed = listed[n]
				out = append(out, e)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// entry decodes a slot in use, without its value.
func (g Geometry) entry(b []byte, n uint32) (Entry, bool) {
	s := g.decodeSlot(b)
	if s.status != slotOccupied || s.key == "" {
		return Entry{}, false
	}
	return Entry{Key: s.key, MTime: time.Unix(0, int64(s.at.mtime)), slot: n, at: s.at}, true
}

// value reads a value from the heap and checks it.
func (t *table) value(p pointer) (value []byte, damaged bool) {
	if p.length == 0 {
		return nil, false
	}
	if p.length > maxValue || !t.holds(p, int64(p.length)) {
		return nil, true
	}
	b := make([]byte, sumSize+int(p.length))
	if _, err := t.segments[p.segment()].ReadAt(b, p.offset()); err != nil {
		return nil, true
	}
	value = b[sumSize:]
	if xxh3.Hash(value) != binary.LittleEndian.Uint64(b) {
		return nil, true
	}
	return value, false
}

// holds says whether the heap has room for a value of so many bytes where p points.
func (t *table) holds(p pointer, length int64) bool {
	return p.segment() < len(t.segments) && p.offset()+sumSize+length <= t.sizes[p.segment()]
}

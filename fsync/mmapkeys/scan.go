package mmapkeys

import (
	"errors"
	"io"
	"slices"
	"time"
)

// readSlots reads single slots. holes: see Content.
func (t *table) readSlots(listed map[uint32]int64) (out []Entry, holes bool, err error) {
	buf := make([]byte, t.b.g.SlotSize)
	for _, n := range sortedSlots(listed) {
		if _, err := t.index.ReadAt(buf, t.b.g.slotOffset(n)); err != nil {
			return nil, false, err
		}
		e, ok := t.b.g.decodeEntry(buf, n)
		if ok {
			e.Listed = true
			out = append(out, e)
		}
		holes = holes || !ok && buf[0] != slotDeleted
	}
	return out, holes, nil
}

func sortedSlots(m map[uint32]int64) []uint32 {
	out := make([]uint32, 0, len(m))
	for s := range m {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// scanIndex reads the whole index. holes: see Content.
func (t *table) scanIndex(listed map[uint32]int64) (out []Entry, holes bool, err error) {
	size := t.b.g.SlotSize
	buf := make([]byte, max(1, 256<<10/size)*size)
	in := io.NewSectionReader(t.index, int64(size), t.b.g.indexSize()-int64(size))
	for n := uint32(1); ; {
		got, err := io.ReadFull(in, buf)
		for at := 0; at+size <= got; at, n = at+size, n+1 {
			_, onList := listed[n]
			if !onList && buf[at] != slotOccupied {
				continue
			}
			e, ok := t.b.g.decodeEntry(buf[at:at+size], n)
			if ok {
				e.Listed = onList
				out = append(out, e)
			}
			holes = holes || onList && !ok && buf[at] != slotDeleted
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out, holes, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// decodeEntry decodes a slot in use, without its value.
func (g Geometry) decodeEntry(b []byte, n uint32) (Entry, bool) {
	s := g.decodeSlot(b)
	if s.status != slotOccupied || s.key == "" {
		return Entry{}, false
	}
	return Entry{Key: s.key, MTime: time.Unix(0, int64(s.at.mtime)), slot: n, at: s.at}, true
}

package mmapkeys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

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
			r.addSlot(t.b.g, binary.LittleEndian.Uint32(buf[i:]), at)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
	}
}

func (r *rosterList) addSlot(g Geometry, s uint32, at int64) {
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

package mmapkeys

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// Get returns one entry, whether it is listed or not, as the master finds it; ok is false when there is none.
func (b *Bank) Get(ctx context.Context, key string) (e Entry, ok bool, err error) {
	if b.Mark().Identity() == "" || len(key) > b.g.KeySize {
		return Entry{}, false, nil
	}
	lock, err := b.takeLock(ctx, unix.LOCK_SH)
	if err != nil {
		return Entry{}, false, err
	}
	defer lock.Close()
	t, err := b.openTable(unix.O_RDONLY)
	if err != nil {
		return Entry{}, false, wrapError("read", err)
	}
	defer t.close()
	n, s, found, err := t.findKey(key)
	if err != nil || !found {
		return Entry{}, false, wrapError("read", err)
	}
	e = Entry{Key: s.key, MTime: time.Unix(0, int64(s.at.mtime)), slot: n, at: s.at}
	e.Value, e.Damaged = t.readValue(s.at)
	if roster, rerr := t.readRoster(); rerr == nil {
		_, e.Listed = roster.slots[n]
	}
	return e, true, nil
}

// readValue reads a value from the heap and checks it.
func (t *table) readValue(p pointer) (value []byte, damaged bool) {
	if p.length == 0 {
		return nil, false
	}
	if p.length > maxValue || !t.hasRoom(p, int64(p.length)) {
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

// hasRoom says whether the heap has room for a value of so many bytes where p points.
func (t *table) hasRoom(p pointer, length int64) bool {
	return p.segment() < len(t.segments) && p.offset()+sumSize+length <= t.sizes[p.segment()]
}

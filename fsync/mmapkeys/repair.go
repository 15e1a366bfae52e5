package mmapkeys

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Repair makes roster, header and heap agree with the index, where they do not.
func (b *Bank) Repair(ctx context.Context) error {
	lock, err := b.takeLock(ctx, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Lstat(b.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := b.createFiles(); err != nil {
		return wrapError("repair", err)
	}
	t, err := b.openTable(os.O_RDWR)
	if err != nil {
		return wrapError("repair", err)
	}
	defer t.close()
	w, err := newWriter(t)
	if err == nil {
		err = errors.Join(w.repairFiles(), w.syncFiles())
	}
	return wrapError("repair", err)
}

// repairFiles goes by the index, as Salt does (_roster_recover), but in place: other processes have the roster open.
func (w *writer) repairFiles() error {
	entries, _, err := w.scanIndex(w.roster.slots)
	if err != nil {
		return err
	}
	if err := w.growHeap(entries); err != nil {
		return err
	}
	want := map[uint32]bool{}
	for _, e := range entries {
		if !isHidden(e.Key) {
			want[e.slot] = true
		}
	}
	extra := w.roster.extra
	for s, place := range w.roster.slots {
		if !want[s] {
			extra = append(extra, place)
			delete(w.roster.slots, s)
		}
	}
	slices.Sort(extra)
	for _, place := range extra {
		if _, err := w.table.roster.WriteAt(binary.LittleEndian.AppendUint32(nil, tombstone), place); err != nil {
			return err
		}
	}
	w.head.occupied = uint64(len(w.roster.slots))
	for _, e := range entries {
		if _, listed := w.roster.slots[e.slot]; want[e.slot] && !listed {
			if err := w.setListed(e.slot, true); err != nil {
				return err
			}
		}
		w.head.high = max(w.head.high, uint64(e.slot))
	}
	w.roster.extra, w.roster.wrong = nil, false
	return w.saveHeader()
}

// isHidden says whether a key is one that no roster shall have.
func isHidden(key string) bool { return strings.HasPrefix(key, HiddenPrefix) }

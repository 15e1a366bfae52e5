package mmapkeys

import (
	"context"

	"golang.org/x/sys/unix"
)

// Lost says whether the index has lost what it knew of keys that were in the bank and are not any more: the slot where
// the search for one of them begins was never used. That slot held the key or another one when the key was put, and
// what is deleted leaves a mark. A loss may go unnoticed where keys share a slot; without the roster this is the
// best sign.
func (b *Bank) Lost(ctx context.Context, keys []string) (bool, error) {
	if len(keys) == 0 {
		return false, nil
	}
	lock, err := b.takeLock(ctx, unix.LOCK_SH)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	t, err := b.openTable(unix.O_RDONLY)
	if err != nil {
		return false, wrapError("read", err)
	}
	defer t.close()
	status := make([]byte, 1)
	for _, key := range keys {
		if _, err := t.index.ReadAt(status, b.g.slotOffset(b.g.homeSlot(key))); err != nil {
			return false, wrapError("read", err)
		}
		if status[0] == slotEmpty {
			return true, nil
		}
	}
	return false, nil
}

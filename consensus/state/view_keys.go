package state

import "slices"

// Key finds the key of a minion.
func (v View) Key(id string) (Key, bool) {
	if k := v.get().keys.get(id); k != nil {
		return *k, true
	}
	return Key{}, false
}

// KeyRev is the BaseRev that a proposal for this minion needs: the revision of
// its key, or of its tombstone, or zero.
func (v View) KeyRev(id string) uint64 { return v.get().keyRev(id) }

// Tombstone finds what remains of a deleted key.
func (v View) Tombstone(id string) (Tombstone, bool) {
	if t := v.get().tombs.get(id); t != nil {
		return *t, true
	}
	return Tombstone{}, false
}

// Tombstones counts them.
func (v View) Tombstones() int { return v.get().tombs.len() }

// TombstoneFloor is the highest revision among deletions already forgotten.
// Who last looked at the state before it has to compare all keys instead of
// asking KeysSince.
func (v View) TombstoneFloor() uint64 { return v.get().tombFloor }

// Keys calls f with every key, in the order of ids, until f says false.
func (v View) Keys(f func(Key) bool) {
	v.get().keys.ascend("", func(_ string, k *Key) bool { return f(*k) })
}

// KeyCount counts the keys in any state.
func (v View) KeyCount() int { return v.get().keys.len() }

// KeysSince lists the keys that changed after rev, deletions included, in the
// order of their revisions, each with its last change only. Deletions older
// than TombstoneFloor may be missing.
func (v View) KeysSince(rev uint64) []KeyChange {
	d := v.get()
	if rev >= d.rev {
		return nil
	}
	var out []KeyChange
	d.keyRevs.ascend(rev+1, func(_ uint64, k *Key) bool {
		out = append(out, KeyChange{Key: *k})
		return true
	})
	n := len(out)
	d.tombRevs.ascend(rev+1, func(_ uint64, t *Tombstone) bool {
		out = append(out, KeyChange{Deleted: true, Key: Key{ID: t.ID, Rev: t.Rev, Audit: t.Audit}})
		return true
	})
	if n > 0 && len(out) > n {
		slices.SortFunc(out, func(a, b KeyChange) int {
			if a.Rev < b.Rev {
				return -1
			}
			return 1
		})
	}
	return out
}

// Denied finds the denied key of an id.
func (v View) Denied(id string) (DeniedKey, bool) {
	if k := v.get().denied.get(id); k != nil {
		return *k, true
	}
	return DeniedKey{}, false
}

// DeniedKeys lists all denied keys in the order of ids.
func (v View) DeniedKeys() []DeniedKey {
	d := v.get()
	out := make([]DeniedKey, 0, d.denied.len())
	d.denied.ascend("", func(_ string, k *DeniedKey) bool {
		out = append(out, *k)
		return true
	})
	return out
}

// DeniedRev is the revision of the last change to the denied keys.
func (v View) DeniedRev() uint64 { return v.get().deniedRev }

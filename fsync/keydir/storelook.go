package keydir

import (
	"context"
	"time"

	"saltclusterd/fsync/mmapkeys"
)

// storeState is how the master's key store and the key files are to each other.
type storeState struct {
	store      *store               // nil: the master has its keys in the directories only
	lastSynced *lastSynced          // what the store held when it was last in step with the files
	strange    [2]bool              // its banks are not those lastSynced is about
	lacking    map[subject]struct{} // what it has no room for
	storeFrom  time.Time            // when workers of the master see what was written to it last
	seen       []seenLater
	stepLogged time.Time
}

// lookStore brings what is known of the store up to date. Ids of which it has something else become dirty.
func (l *loop) lookStore(now time.Time) error {
	st := l.store
	if st == nil || !st.needsRead() {
		return nil
	}
	if at := st.looked.Add(scanShare * st.took); !st.looked.IsZero() && now.Before(at) {
		l.wakeAt(at)
		return nil
	}
	ids, err := st.readChanges(l.ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		l.markDirty(id)
	}
	if !l.lastSynced.initialized {
		l.lastSynced.initialized, l.lastSynced.blank = true, !st.hasKeys()
	}
	for i, c := range st.content {
		gone := l.goneFromBank(i)
		if l.lastSynced.banks[i].isSameBank(c) {
			if err := l.findLost(i, gone); err != nil {
				return err
			}
		}
		if l.strange[i] = !l.lastSynced.banks[i].isSameBank(c); l.strange[i] {
			for _, id := range gone { // it has no say about them, now or later
				l.toldNow(subject{id, i == 1}, entry{})
			}
		}
		l.noteBankID(i)
	}
	return nil
}

// goneFromBank lists the ids that a bank had and has not any more.
func (s *storeState) goneFromBank(bank int) (ids []string) {
	for sub := range s.lastSynced.is {
		if _, there := s.store.content[bank].Entries[sub.id]; bankOf(sub) == bank && !there && s.store.fitsKey(sub.id) {
			ids = append(ids, sub.id)
		}
	}
	return ids
}

// findLost looks whether what is gone from a bank has been deleted, or is lost.
func (l *loop) findLost(bank int, gone []string) error {
	ctx, cancel := context.WithTimeout(l.ctx, storeTimeout)
	defer cancel()
	lost, err := l.store.banks[bank].Lost(ctx, gone)
	if err == nil && lost {
		err = l.markBankStrange(bank)
	}
	return err
}

// markBankStrange makes a bank a strange one: what is missing there has not been deleted by anybody. That is kept
// before anything is put right there.
func (l *loop) markBankStrange(bank int) error {
	if l.lastSynced.banks[bank] != (bankID{}) {
		l.log.Warn("the master's key store has lost keys, as after a power failure: the key files decide",
			"path", [2]string{mmapkeys.Keys, mmapkeys.DeniedKeys}[bank])
		l.lastSynced.banks[bank] = bankID{}
		l.m.dirty = true
	}
	return l.saveBase(time.Now(), true)
}

// noteBankID notes how far a bank has come, unless it is a strange one.
func (l *loop) noteBankID(i int) {
	if l.strange[i] {
		return
	}
	if id := idOf(l.store.content[i]); id != l.lastSynced.banks[i] {
		l.lastSynced.banks[i] = id
		l.m.dirty = true
	}
}

// settleStore ends the strangeness after everything was gone through and nothing failed.
func (l *loop) settleStore(out map[string]bool) {
	for i := range l.strange {
		if l.strange[i] && len(out) == 0 {
			l.strange[i] = false
			l.noteBankID(i)
		}
	}
}

// strangeStore says whether everything must be gone through.
func (s *storeState) strangeStore() bool { return s.store != nil && (s.strange[0] || s.strange[1]) }

package keydir

import (
	"time"
)

// lookStore brings what is known of the store up to date. Ids of which it has something else become dirty.
func (l *loop) lookStore(now time.Time) error {
	st := l.store
	if st == nil || !st.changed() {
		return nil
	}
	if at := st.looked.Add(scanShare * st.took); !st.looked.IsZero() && now.Before(at) {
		l.wakeAt(at)
		return nil
	}
	ids, err := st.look(l.ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		l.dirty[id] = struct{}{}
	}
	if !l.told.met {
		l.told.met, l.told.blank = true, !st.keys()
	}
	for i, c := range st.content {
		if l.strange[i] = !l.told.banks[i].same(c); !l.strange[i] {
			l.know(i)
		}
	}
	return nil
}

// know notes how far a bank has come.
func (l *loop) know(i int) {
	if id := idOf(l.store.content[i]); id != l.told.banks[i] {
		l.told.banks[i] = id
		l.m.dirty = true
	}
}

// settleStore ends the strangeness after everything was gone through and nothing failed.
func (l *loop) settleStore(out map[string]bool) {
	for i := range l.strange {
		if l.strange[i] && len(out) == 0 {
			l.strange[i] = false
			l.know(i)
		}
	}
}

// strangeStore says whether everything must be gone through.
func (l *loop) strangeStore() bool { return l.store != nil && (l.strange[0] || l.strange[1]) }

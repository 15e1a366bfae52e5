package keydir

// StoreStatus describes the master's own key store.
type StoreStatus struct {
	Keys    int
	Fill    float64 // how much of its table is in use or was, from 0 to 1
	Lacking int     // keys that found no room
	Strange bool    // it is not the one of the last time, or was never seen, and is being brought up to date
	Err     string  // why it is not kept in step
}

// Store says how the master's own key store is; nil when it has none, or it was not scanned yet.
func (d *Dir) Store() *StoreStatus { return d.store.Load() }

// tellStore publishes how the store is.
func (l *loop) tellStore(err error) {
	if l.store == nil {
		return
	}
	st := StoreStatus{Lacking: len(l.lacking), Strange: l.strangeStore(), Fill: l.store.content[0].Fill}
	for s := range l.store.held {
		if !s.denied {
			st.Keys++
		}
	}
	for id := range l.m.base.Keys {
		if !l.store.fitsKey(id) {
			st.Lacking++
		}
	}
	if err != nil {
		st.Err = err.Error()
	}
	l.status.Store(&st)
}

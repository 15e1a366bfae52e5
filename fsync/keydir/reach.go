package keydir

import (
	"time"
)

// seenLater is a revision that counts as written only when workers of the master see it.
type seenLater struct {
	rev uint64
	at  time.Time
}

// reach notes that everything up to rev is written.
func (l *loop) reach(now time.Time, rev uint64) {
	if l.store != nil && now.Before(l.storeFrom) {
		if n := len(l.seen); n == 0 || l.seen[n-1].rev < rev {
			l.seen = append(l.seen, seenLater{rev, l.storeFrom})
		}
		l.wakeAt(l.seen[0].at)
		return
	}
	l.seen = nil
	l.report(rev)
}

// ripe reports what workers of the master see by now.
func (l *loop) ripe(now time.Time) {
	for len(l.seen) > 0 && !now.Before(l.seen[0].at) {
		l.report(l.seen[0].rev)
		l.seen = l.seen[1:]
	}
	if len(l.seen) > 0 {
		l.wakeAt(l.seen[0].at)
	}
}

func (l *loop) report(rev uint64) {
	l.synced.set(rev)
	if l.tell != nil {
		l.tell(rev)
	}
}

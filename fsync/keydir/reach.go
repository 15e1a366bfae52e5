package keydir

import (
	"sync/atomic"
	"time"
)

// seenLater is a revision that counts as written only when workers of the master see it.
type seenLater struct {
	rev uint64
	at  time.Time
}

// noteWritten notes that everything up to rev is written.
func (l *loop) noteWritten(now time.Time, rev uint64) {
	if l.store != nil && now.Before(l.storeFrom) {
		if n := len(l.seen); n == 0 || l.seen[n-1].rev < rev {
			l.seen = append(l.seen, seenLater{rev, l.storeFrom})
		}
		l.wakeAt(l.seen[0].at)
		return
	}
	l.seen = nil
	l.reportSynced(rev)
}

// reportVisible reports what workers of the master see by now.
func (l *loop) reportVisible(now time.Time) {
	for len(l.seen) > 0 && !now.Before(l.seen[0].at) {
		l.reportSynced(l.seen[0].rev)
		l.seen = l.seen[1:]
	}
	if len(l.seen) > 0 {
		l.wakeAt(l.seen[0].at)
	}
}

// published is what the loop lets others know.
type published struct {
	synced   *progress
	tell     func(rev uint64) // tells the nodes that share the directories; nil: there are none
	status   *atomic.Pointer[StoreStatus]
	settled  *atomic.Bool // see Dir.Settled
	heldKeys *atomic.Pointer[[]string]
}

func (p *published) reportSynced(rev uint64) {
	p.synced.setRev(rev)
	if p.tell != nil {
		p.tell(rev)
	}
}

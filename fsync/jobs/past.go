package jobs

import (
	"os"
	"slices"
	"time"
)

// load takes in the table from before the start.
func (x *index) load(raw []byte) error {
	if raw == nil {
		return nil
	}
	t, err := decodeTable(raw)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, jid := range t.gone {
		x.remember(jid)
	}
	x.past, x.pastKeep = t.there, t.keep
	return nil
}

// settlePast notes the jobs that the master removed unseen before the first whole scan: they were there, are not now,
// and their time was over. It is called after a scan that has seen all that is there.
func (x *index) settlePast() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for jid := range x.past {
		x.removedSince(jid)
	}
	x.past = nil
}

// removedSince notes if a job, which is not there, was before the start and has gone in due course. x.mu is held.
func (x *index) removedSince(jid string) {
	at, ok := x.past[jid]
	if !ok {
		return
	}
	delete(x.past, jid)
	if x.nearlyOver(at) || x.overBy(x.pastKeep, at) { // the option may be another one now
		x.markRemoved(jid)
	}
}

// setKeep changes how long the master keeps jobs. Jobs that it removed before, and that have not been missed yet, are
// noted first.
func (x *index) setKeep(keep time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if keep == x.keep {
		return
	}
	for _, j := range x.jobs {
		if !j.there || !x.nearlyOver(j.at) {
			continue
		}
		if _, err := os.Lstat(x.disk.path(j.jid)); gone(err) {
			x.drop(j)
		}
	}
	x.keep = keep
	x.changed()
}

// encode makes the content of the table.
func (x *index) encode() ([]byte, error) {
	x.mu.Lock()
	t := table{keep: x.keep, there: make(map[string]int64, len(x.jobs)+len(x.past))}
	for jid, at := range x.past { // not looked for yet
		t.there[jid] = at
	}
	for jid, j := range x.jobs {
		if j.there {
			t.there[jid] = j.at
		}
	}
	t.gone = slices.Concat(x.goneList[x.goneNext:], x.goneList[:x.goneNext])
	x.mu.Unlock()
	return t.encode(), nil
}

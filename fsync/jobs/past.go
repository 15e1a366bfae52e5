package jobs

import (
	"context"
	"os"
	"slices"
	"time"

	"saltclusterd/backoff"
)

// restore takes in what was known before the start.
func (x *index) restore(t table) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, jid := range t.gone {
		x.bury(jid)
	}
	x.past, x.pastKeep, x.changes = t.there, t.keep, 0
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
		x.bury(jid)
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
	x.changes++
}

// snapshot returns what is to be saved; changes tells saved what it covers. Nothing is to be saved when it is 0.
func (x *index) snapshot() (t table, changes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changes == 0 {
		return t, 0
	}
	t.keep = x.keep
	t.there = make(map[string]int64, len(x.jobs)+len(x.past))
	for jid, at := range x.past { // not looked for yet
		t.there[jid] = at
	}
	for jid, j := range x.jobs {
		if j.there {
			t.there[jid] = j.at
		}
	}
	t.gone = slices.Concat(x.goneList[x.goneNext:], x.goneList[:x.goneNext])
	return t, x.changes
}

func (x *index) saved(changes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes -= changes
}

// keepSaving saves the table soon after changes, and a large one less often.
func (s *Store) keepSaving(ctx context.Context) {
	const share = 100 // of the time goes into it
	for rest := s.cfg.Timing.Save; backoff.Sleep(ctx, rest); {
		began := time.Now()
		if err := s.save(); err != nil {
			s.fail("save", "", err)
		}
		rest = max(s.cfg.Timing.Save, share*time.Since(began))
	}
}

// save stores the table if it has changed.
func (s *Store) save() error {
	t, changes := s.index.snapshot()
	if changes == 0 {
		return nil
	}
	if err := t.save(s.cfg.StateDir); err != nil {
		return err
	}
	s.index.saved(changes)
	return nil
}

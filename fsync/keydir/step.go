package keydir

import (
	"errors"
	"maps"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
)

// stepping is a step of the loop between files and store.
type stepping struct {
	pushes []storing
	pulls  []writing
}

// syncStore makes files and store the same where only one of them has changed, and returns the ids that are not to be
// decided about in this round.
func (l *loop) syncStore(view state.View, ids []string) (out map[string]bool) {
	out = map[string]bool{}
	var s stepping
	cut := l.truncatedIDs(ids)
	for _, id := range ids {
		if !l.store.fitsKey(id) || cut[id] {
			continue
		}
		onDisk := l.disk.foundFor(id)
		for _, sub := range []subject{{id: id}, {id, true}} {
			if err := l.stepOne(&s, view, sub, onDisk.findingFor(sub)); err != nil {
				l.stepFailed(id, err)
				out[id] = true
			}
		}
	}
	for i, err := range l.writer.applyWritings(s.pulls) {
		w := s.pulls[i]
		if err != nil {
			l.stepFailed(w.subject.id, err)
			out[w.subject.id] = true
			continue
		}
		l.toldNow(w.subject, l.store.held[w.subject].entry)
		if i < maxLogged {
			l.log.Info("key change found in the master's key store", "minion", w.subject.id, "state",
				stateName(w.subject, w.want))
		}
		if w.want != l.store.held[w.subject].entry { // made pending
			s.pushes = append(s.pushes, storing{w.subject, w.want, w.text})
		}
	}
	l.writeStore(s.pushes, out)
	return out
}

// stepOne notes what has to be done about a subject.
func (l *loop) stepOne(s *stepping, view state.View, sub subject, f finding) error {
	st := l.store
	h := st.held[sub]
	c := compare{
		file: f, held: h, lastSynced: l.lastSynced.is[sub], strange: l.strange[bankOf(sub)],
		founder: l.m.base.Stale == found, blank: l.lastSynced.blank || sub.denied,
		known: !sub.denied && view.KeyRev(sub.id) != 0,
	}
	both := c.bothDiffer()
	switch c.decideMatch() {
	case inStep:
		l.toldNow(sub, h.entry)
	case push:
		if both && h.text != "" {
			l.keepStored(sub, h)
		}
		s.pushes = append(s.pushes, storing{subject: sub, want: f.entry})
	case demote:
		text, err := l.disk.readEntry(sub, f.entry)
		if err != nil {
			return err
		}
		s.pulls = append(s.pulls, writing{subject: sub, want: entry{state.KeyPending, f.Print}, text: text, finding: f})
	case pull:
		w := writing{subject: sub, want: h.entry, text: h.text, finding: f, overruled: both}
		if c.strange && !c.founder && w.want.State == state.KeyAccepted {
			w.want.State = state.KeyPending // who accepted it did not know this cluster
		}
		s.pulls = append(s.pulls, w)
	}
	return nil
}

// writeStore writes to the store. A key that it has no room for is missing there, which does not hold up the files.
func (l *loop) writeStore(all []storing, out map[string]bool) {
	if len(all) == 0 {
		return
	}
	ready := all[:0]
	for _, w := range all {
		if w.want != (entry{}) && w.text == "" {
			var err error
			if w.text, err = l.disk.readEntry(w.subject, w.want); err != nil {
				l.stepFailed(w.subject.id, err)
				out[w.subject.id] = true
				continue
			}
		}
		ready = append(ready, w)
	}
	for i, err := range l.store.writeEntries(l.ctx, ready) {
		w := ready[i]
		switch {
		case err == nil:
			l.toldNow(w.subject, w.want)
			delete(l.lacking, w.subject)
		case errors.Is(err, mmapkeys.ErrFull):
			if _, ok := l.lacking[w.subject]; !ok {
				l.lacking[w.subject] = struct{}{}
				l.log.Error("key not written to the master's key store", "minion", w.subject.id, "err", err)
			}
		default:
			l.stepFailed(w.subject.id, err)
			out[w.subject.id] = true
		}
	}
	for i := range l.store.banks {
		l.noteBankID(i)
	}
	l.storeFrom = time.Now().Add(mmapkeys.Settle)
	l.wakeIn(l.cfg.Timing.Debounce) // to learn where it lies there now
}

func (l *loop) toldNow(s subject, e entry) {
	if l.lastSynced.setEntry(s, e) {
		l.m.dirty = true
	}
}

// stepFailed has an id tried again.
func (l *loop) stepFailed(id string, err error) {
	l.markDirty(id)
	if errors.Is(err, errChanged) || errors.Is(err, mmapkeys.ErrChanged) {
		l.store.due = true
		l.wakeIn(l.cfg.Timing.Debounce)
		return
	}
	l.wakeIn(l.cfg.Timing.Retry)
	l.metrics.failures.WithLabelValues("store").Inc()
	if now := time.Now(); now.Sub(l.stepLogged) > time.Second { // all of a step fail for one reason
		l.stepLogged = now
		l.log.Error("files and key store of the master differ", "minion", id, "err", err)
	}
}

// keepStored puts a copy aside of what the store had.
func (l *loop) keepStored(s subject, h held) {
	p := deniedDir
	if !s.denied {
		p = placeOf(h.State)
	}
	if err := l.writer.overruled.storeFile(p, s.id, []byte(h.text)); err != nil {
		l.log.Warn("overruled key of the store not kept", "minion", s.id, "err", err)
	}
}

// truncatedIDs returns those of ids that are what Salt has left of longer ones.
func (l *loop) truncatedIDs(ids []string) map[string]bool {
	size := l.store.geometry.KeySize
	if !slices.ContainsFunc(ids, func(id string) bool { return len(id) == size }) {
		return nil
	}
	out := map[string]bool{}
	note := func(id string) {
		if len(id) > size {
			out[id[:size]] = true
		}
	}
	for p := range places {
		for id := range l.disk.files[p] {
			note(id)
		}
	}
	for id := range l.m.base.Keys {
		note(id)
	}
	return out
}

// storeWritten brings decisions that were written to files to the store.
func (l *loop) storeWritten(view state.View, ws []writing) bool {
	ids := map[string]struct{}{}
	for _, w := range ws {
		ids[w.subject.id] = struct{}{}
	}
	return len(l.syncStore(view, slices.Collect(maps.Keys(ids)))) == 0
}

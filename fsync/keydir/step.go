package keydir

import (
	"errors"
	"maps"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
)

// match is what has to be done so that files and store have the same of a subject.
type match uint8

const (
	inStep match = iota
	push         // files to store
	pull         // store to files
	demote       // the file is left over: pending, on both sides
	later        // not to be decided yet
)

// compare is everything that depends on.
type compare struct {
	file    finding
	held    held
	told    entry
	strange bool // the store is not the one that told is about
	founder bool // what is found is taken as it is
	blank   bool // there was nothing in the store at first
	known   bool // consensus has heard of it
}

// decide: whichever of the two differs from what they were agrees to the other; of two edits the later one wins. A strange store
// has no say about what files or consensus know, except where everything begins: there it is what the master goes by.
func (c compare) decide() match {
	f, h := c.file.entry, c.held.entry
	switch {
	case c.file.garbage, c.file.twice, c.file.temp:
		return later // no state to copy; the machine deals with it
	case f == h && !c.held.garbage:
		return inStep
	case c.held.garbage:
		if f == (entry{}) {
			return inStep // no key on either side
		}
		return push
	case c.strange && (f == entry{}):
		if c.known {
			return push
		}
		return pull
	case c.strange && c.founder && h != entry{}:
		return pull
	case c.strange && c.founder && !c.blank && f.State == state.KeyAccepted:
		return demote // salt-key on this master has not shown it, and cannot have deleted it
	case c.strange:
		return push
	case h == c.told:
		return push
	case f == c.told:
		return pull
	case h != entry{} && f != entry{} && c.held.raw.MTime.After(c.file.modified):
		return pull
	}
	return push
}

// both says that one of the two is about to be lost.
func (c compare) both() bool {
	f, h := c.file.entry, c.held.entry
	return f != entry{} && h != entry{} && f.Print != h.Print && (c.strange || f != c.told && h != c.told)
}

// stepping is a step of the loop between files and store.
type stepping struct {
	pushes []storing
	pulls  []writing
}

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

// step makes files and store the same where only one of them has changed, and returns the ids that are not to be decided about
// in this round.
func (l *loop) step(view state.View, ids []string) (out map[string]bool) {
	out = map[string]bool{}
	var s stepping
	cut := l.cut(ids)
	for _, id := range ids {
		if !l.store.fits(id) || cut[id] {
			continue
		}
		sight := l.disk.sight(id)
		for _, sub := range []subject{{id: id}, {id, true}} {
			l.stepOne(&s, view, sub, sight.of(sub))
		}
	}
	for i, err := range l.writer.apply(s.pulls) {
		w := s.pulls[i]
		if err != nil {
			l.stepFailed(w.subject.id, err)
			out[w.subject.id] = true
			continue
		}
		l.toldNow(w.subject, l.store.held[w.subject].entry)
		if i < maxLogged {
			l.log.Info("key change found in the master's key store", "minion", w.subject.id, "state", stateName(w.subject, w.want))
		}
		if w.want != l.store.held[w.subject].entry { // made pending
			s.pushes = append(s.pushes, storing{w.subject, w.want, w.text})
		}
	}
	l.push(s.pushes, out)
	return out
}

func (l *loop) stepOne(s *stepping, view state.View, sub subject, f finding) {
	st := l.store
	h := st.held[sub]
	c := compare{
		file: f, held: h, told: l.told.is[sub], strange: l.strange[bankOf(sub)],
		founder: l.m.base.Stale == found, blank: l.told.blank || sub.denied,
		known: !sub.denied && view.KeyRev(sub.id) != 0,
	}
	both := c.both()
	switch c.decide() {
	case inStep:
		l.toldNow(sub, h.entry)
	case push:
		if both && h.text != "" {
			l.keepStored(sub, h)
		}
		s.pushes = append(s.pushes, storing{subject: sub, want: f.entry})
	case demote:
		text, err := l.disk.text(sub, f.entry)
		if err != nil {
			l.stepFailed(sub.id, err)
			return
		}
		s.pulls = append(s.pulls, writing{subject: sub, want: entry{state.KeyPending, f.Print}, text: text, finding: f})
	case pull:
		w := writing{subject: sub, want: h.entry, text: h.text, finding: f, aside: both}
		if c.strange && !c.founder && w.want.State == state.KeyAccepted {
			w.want.State = state.KeyPending // who accepted it did not know this cluster
		}
		s.pulls = append(s.pulls, w)
	}
}

// push writes to the store. What it has no room for, it does not have; the files go on without it.
func (l *loop) push(all []storing, out map[string]bool) {
	if len(all) == 0 {
		return
	}
	ready := all[:0]
	for _, w := range all {
		if w.want != (entry{}) && w.text == "" {
			var err error
			if w.text, err = l.disk.text(w.subject, w.want); err != nil {
				l.stepFailed(w.subject.id, err)
				out[w.subject.id] = true
				continue
			}
		}
		ready = append(ready, w)
	}
	for i, err := range l.store.put(l.ctx, ready) {
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
	l.storeFrom = time.Now().Add(mmapkeys.Settle)
	l.wake(l.cfg.Timing.Debounce) // to learn where it lies there now
}

func (l *loop) toldNow(s subject, e entry) {
	if l.told.set(s, e) {
		l.m.dirty = true
	}
}

// stepFailed has an id tried again.
func (l *loop) stepFailed(id string, err error) {
	l.dirty[id] = struct{}{}
	if errors.Is(err, errChanged) || errors.Is(err, mmapkeys.ErrChanged) {
		l.store.due = true
		l.wake(l.cfg.Timing.Debounce)
		return
	}
	l.wake(l.cfg.Timing.Retry)
	l.metrics.failures.WithLabelValues("store").Inc()
	if now := time.Now(); now.Sub(l.stepLogged) > time.Second { // all of a step fail for one reason
		l.stepLogged = now
		l.log.Error("files and key store of the master are not the same", "minion", id, "err", err)
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

// keepStored puts a copy aside of what the store had.
func (l *loop) keepStored(s subject, h held) {
	p := deniedDir
	if !s.denied {
		p = placeOf(h.State)
	}
	if err := l.writer.aside.store(p, s.id, []byte(h.text)); err != nil {
		l.log.Warn("overruled key of the store not kept", "minion", s.id, "err", err)
	}
}

// cut returns those of ids that are what Salt has left of longer ones.
func (l *loop) cut(ids []string) map[string]bool {
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

// follow brings decisions that were written to files to the store.
func (l *loop) follow(view state.View, ws []writing) bool {
	ids := map[string]struct{}{}
	for _, w := range ws {
		ids[w.subject.id] = struct{}{}
	}
	return len(l.step(view, slices.Collect(maps.Keys(ids)))) == 0
}

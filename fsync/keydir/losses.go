package keydir

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"saltclusterd/consensus/state"
)

// Accepted keys that disappear from the directories in numbers are held: they are restored on disk and stay accepted in
// the cluster until an operator decides. A program that judges minions by the events of one master (thorium's
// key.timeout, a reactor, a script) deletes the keys of all minions that use other masters, and nothing in the
// directories tells its deletions from those of salt-key.
const (
	// lossWindow is the time in which losses are counted, those of other nodes included.
	lossWindow = time.Minute
	// lossSpan is the time in which slow losses must leave half of the most accepted keys that there were.
	lossSpan = time.Hour
	// lossesAtLeast losses within one of these times are too many only if they are a wave that takes a large share.
	lossesAtLeast = 3
	// waveShare is the part of the accepted keys that one wave may take: a third. One key may always go.
	waveShare = 3
	// waveMost bounds how long losses wait for others that follow at once, so that all of them are judged together.
	waveMost = 2 * time.Second
)

// losses counts the accepted keys that are taken away by way of the directories. It belongs to the machine; what was
// lost, and what is held, is in its base.
type losses struct {
	percent int         // of the accepted keys that may be lost within lossWindow; zero: any number
	all     func() bool // whether none may be; nil: false
	seen    uint64      // revision up to which the losses of other nodes have been counted
	wave    time.Time   // since when losses wait for others; zero: none waits
	changed bool        // base.Held has changed since the loop published it
}

// isLoss reports whether a step takes an accepted key away: it deletes or rejects the key, makes it pending again, as
// moving its file does, or puts another one in its place, as a copy of an old directory does. The denied one of the
// minion in its place is none: only a person, or auto_accept, accepts that.
func (k keyState) isLoss(s subject) bool {
	if s.denied || k.stale != fresh || k.cons.State != state.KeyAccepted {
		return false
	}
	return k.disk.State != state.KeyAccepted || k.disk.Print != k.cons.Print && k.disk.Print != k.denied
}

// countLosses adds to the recent losses those that other nodes have proposed since the last round. The base still has
// the keys then.
func (m *machine) countLosses(now time.Time, view state.View) {
	t, recent := &m.losses, m.base.Losses
	if t.seen == 0 {
		t.seen = m.base.Seen
	}
	maps.DeleteFunc(recent, func(_ string, at time.Time) bool { return now.Sub(at) >= lossSpan })
	counted := 0
	for _, c := range view.KeysSince(t.seen) {
		lost := c.Deleted || c.State == state.KeyRejected ||
			c.State == state.KeyPending && c.Again <= m.base.Keys[c.ID].Rev // else it was deleted, by whom is not known
		switch {
		case lost && c.Cause != causeKeyFile: // an operator has decided
			delete(recent, c.ID)
		case lost && m.base.Keys[c.ID].State == state.KeyAccepted &&
			now.Add(-m.clockAhead).Sub(time.UnixMilli(c.At)) < lossWindow:
			recent[c.ID] = now
			counted++
		}
	}
	if counted > 0 {
		m.noteFleet(now, countAccepted(view)+counted)
	}
	t.seen = view.Rev()
}

// noteFleet notes how many accepted keys there were before a loss; one size is kept of each lossWindow.
func (m *machine) noteFleet(now time.Time, keys int) {
	fleets := slices.DeleteFunc(m.base.Fleets, func(f fleetSize) bool { return now.Sub(f.At) >= lossSpan })
	if n := len(fleets); n > 0 && now.Sub(fleets[n-1].At) < lossWindow {
		fleets[n-1].Keys = max(fleets[n-1].Keys, keys)
	} else {
		fleets = append(fleets, fleetSize{now, keys})
	}
	m.base.Fleets, m.dirty = fleets, true
}

func countAccepted(view state.View) (n int) {
	view.Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			n++
		}
		return true
	})
	return n
}

// holdLosses removes from a plan the proposals that take too many accepted keys away, and restores these keys instead.
func (m *machine) holdLosses(p *plan, now time.Time, view state.View, look func(id string) diskState) {
	t := &m.losses
	m.releaseHeld(view)
	lost := m.losses.findLosses(m, p, view, look)
	if len(lost) == 0 {
		t.wave = time.Time{}
		return
	}
	if t.wave.IsZero() {
		t.wave = now
	}
	if until := m.moreLosses(now, view, lost); !until.IsZero() && now.Sub(t.wave) < waveMost {
		m.withdrawProposals(p, lost)
		p.lookAgain(lost[0].subject.id, until)
		return
	}
	t.wave = time.Time{}
	for _, w := range lost {
		if since := m.edits[w.subject].since; now.Sub(since) < lossSpan {
			m.base.Losses[w.subject.id], m.dirty = since, true
		}
	}
	// While some are held, the program that took them away may still be at work.
	if len(m.base.Held) == 0 && !t.holdsAll() && !m.tooManyLosses(now, view, lost) {
		return
	}
	m.withdrawProposals(p, lost)
	p.writes = append(p.writes, lost...)
	for _, w := range lost {
		if m.base.Held[w.subject.id] != w.rev {
			m.base.Held[w.subject.id] = w.rev
			m.dirty, t.changed = true, true
		}
	}
}

// findLosses lists the losses that a plan proposes, as writings that restore the keys.
func (t *losses) findLosses(m *machine, p *plan, view state.View, look func(id string) diskState) (lost []writing) {
	if t.percent == 0 {
		return nil
	}
	for _, prop := range p.proposals {
		f := look(prop.subject.id).findingFor(prop.subject)
		if k, text := m.stateOf(view, prop.subject, f); k.isLoss(prop.subject) && prop.want == k.disk {
			lost = append(lost, writing{
				subject: prop.subject, want: k.cons, text: text, rev: k.rev, overruled: k.disk != entry{},
				why: "accepted keys that were taken away are held", finding: f,
			})
		}
	}
	return lost
}

// holdsAll reports whether even a single loss is held.
func (t *losses) holdsAll() bool { return t.percent < 100 && t.all != nil && t.all() }

// tooManyLosses reports whether those that a plan proposes, and those before, exceed what is let through.
func (m *machine) tooManyLosses(now time.Time, view state.View, lost []writing) bool {
	t := &m.losses
	accepted := countAccepted(view)
	m.noteFleet(now, accepted)
	fleet, minute := accepted, 0 // accepted keys a minute ago, and losses since
	for id, at := range m.base.Losses {
		if now.Sub(at) >= lossWindow {
			continue
		}
		minute++
		if k, ok := view.Key(id); !ok || k.State != state.KeyAccepted {
			fleet++
		}
	}
	if minute > max(lossesAtLeast, fleet*t.percent/100) || t.percent < 100 && m.isLargeWave(lost, accepted) {
		return true
	}
	most := 0
	for _, f := range m.base.Fleets {
		most = max(most, f.Keys)
	}
	return t.percent < 100 && len(m.base.Losses) > lossesAtLeast && 2*(accepted-len(lost)) < most
}

// isLargeWave reports whether the newest wave takes more than its share of the accepted keys. In a small fleet three
// keys are most or all of them. Losses that were let through and wait for a quorum belong to earlier waves.
func (m *machine) isLargeWave(lost []writing, accepted int) bool {
	var newest time.Time
	for _, w := range lost {
		if since := m.edits[w.subject].since; since.After(newest) {
			newest = since
		}
	}
	n := 0
	for _, w := range lost {
		if newest.Sub(m.edits[w.subject].since) < waveMost {
			n++
		}
	}
	return n > 1 && waveShare*n > accepted && 100*n > accepted*m.losses.percent
}

// moreLosses returns until when others may join a wave: some accepted keys are gone from disk whose edits have not
// settled yet.
func (m *machine) moreLosses(now time.Time, view state.View, lost []writing) (until time.Time) {
	judged := make(map[subject]struct{}, len(lost))
	for _, w := range lost {
		judged[w.subject] = struct{}{}
	}
	for s, e := range m.edits {
		at := e.since.Add(m.timing.Deletion)
		if _, is := judged[s]; is || !now.Before(at) || !at.After(until) {
			continue
		}
		if k, _ := m.stateOf(view, s, e.finding); k.isLoss(s) {
			until = at
		}
	}
	return until
}

// withdrawProposals takes the proposals about some subjects out of a plan.
func (m *machine) withdrawProposals(p *plan, about []writing) {
	if len(about) == 0 {
		return
	}
	subjects := make(map[subject]bool, len(about))
	for _, w := range about {
		subjects[w.subject] = true
		p.open = append(p.open, w.subject.id)
	}
	p.proposals = slices.DeleteFunc(p.proposals, func(prop proposal) bool { return subjects[prop.subject] })
}

// releaseHeld drops from the held keys those that the cluster has decided about since.
func (m *machine) releaseHeld(view state.View) {
	before := len(m.base.Held)
	maps.DeleteFunc(m.base.Held, func(id string, rev uint64) bool { return view.KeyRev(id) != rev })
	if len(m.base.Held) != before {
		m.dirty, m.losses.changed = true, true
	}
}

// forgetHeld drops all held keys.
func (m *machine) forgetHeld() {
	clear(m.base.Held)
	m.dirty, m.losses.changed = true, true
}

// publishHeld makes the held keys visible to Held after a round that changed them.
func (l *loop) publishHeld() {
	if !l.m.losses.changed {
		return
	}
	l.m.losses.changed = false
	ids := slices.Sorted(maps.Keys(l.m.base.Held))
	if before := l.heldKeys.Swap(&ids); len(ids) > 0 && (before == nil || len(ids) > len(*before)) {
		l.log.Error("accepted keys deleted, rejected or replaced on this host restored", "count", len(ids),
			"hint", "saltclusterctl keys held")
	}
}

// Held lists the minions whose accepted keys were taken away on this host and restored, because they were too many at
// once or because of HoldAll, as far as the cluster has not decided about them since.
func (d *Dir) Held() []string {
	if ids := d.heldKeys.Load(); ids != nil {
		return *ids
	}
	return nil
}

// Forget drops what Held lists and returns it, sorted: the keys stay accepted. The base on disk says so when Forget
// returns without an error; an error of ctx leaves open whether they are dropped.
func (d *Dir) Forget(ctx context.Context) ([]string, error) {
	if len(d.Held()) == 0 {
		return nil, nil
	}
	forgotten := make(chan heldForgotten, 1)
	select {
	case d.forget <- forgotten:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.ctx.Done():
		return nil, ErrClosed
	}
	select {
	case f := <-forgotten:
		return f.ids, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// heldForgotten is the loop's answer to Forget.
type heldForgotten struct {
	ids []string
	err error
}

// forgetHeld drops the held keys, in the base on disk as well.
func (l *loop) forgetHeld() (f heldForgotten) {
	if l.m == nil {
		return f
	}
	f.ids = slices.Sorted(maps.Keys(l.m.base.Held))
	l.m.forgetHeld()
	l.publishHeld()
	if f.err = l.saveBase(time.Now(), true); f.err != nil {
		f.err = fmt.Errorf("store that no keys are held: %w", f.err)
	}
	return f
}

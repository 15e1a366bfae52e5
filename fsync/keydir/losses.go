package keydir

import (
	"maps"
	"slices"
	"time"

	"saltclusterd/consensus/state"
)

// Accepted keys that disappear from the directories in numbers are held: they are written back and not deleted in the cluster until
// somebody says so. A program that judges minions by what one master hears of them (thorium's key.timeout, a reactor, a script) deletes
// the keys of all minions that talk to other masters, and nothing in the directories tells that from salt-key.
const (
	// lossWindow is the time in which losses are counted, of which lossesAtLeast, or one in lossShare of the accepted keys, are
	// let through.
	lossWindow    = time.Minute
	lossesAtLeast = 3
	lossShare     = 10
	// waveMost is how long losses wait for others that follow at once, so that all of them are judged together.
	waveMost = 2 * time.Second
	// maxHeld bounds how many held keys are named.
	maxHeld = 1000
)

// losses judges what takes accepted keys away. It belongs to the machine.
type losses struct {
	on     bool
	recent []time.Time          // of those let through or held, within lossWindow
	wave   time.Time            // since when some wait for others; zero: none do
	held   map[string]time.Time // by minion: when its key was written back last
}

// isLoss says whether a step takes an accepted key away that nothing has replaced.
func (k kase) isLoss(s subject) bool {
	return !s.denied && k.stale == fresh && k.cons.State == state.KeyAccepted && (k.disk == entry{} || k.disk.State == state.KeyRejected)
}

// holdLosses takes from a plan the proposals that take too many accepted keys away, and has these written back instead.
func (m *machine) holdLosses(p *plan, now time.Time, view state.View, look func(id string) sight) {
	t := &m.losses
	if !t.on {
		return
	}
	for id := range t.held { // deleted or rejected in the cluster by somebody
		if key, ok := view.Key(id); !ok || key.State != state.KeyAccepted {
			delete(t.held, id)
		}
	}
	var lost []writing
	for _, prop := range p.proposals {
		f := look(prop.subject.id).of(prop.subject)
		if k, text := m.kase(view, prop.subject, f); k.isLoss(prop.subject) && prop.want == k.disk {
			lost = append(lost, writing{
				subject: prop.subject, want: k.cons, text: text, rev: k.rev, aside: k.disk != entry{},
				why: "too many accepted keys were taken away at once", finding: f,
			})
		}
	}
	if len(lost) == 0 {
		t.wave = time.Time{}
		return
	}
	if t.wave.IsZero() {
		t.wave = now
	}
	if until := m.moreLosses(now, view, lost); !until.IsZero() && now.Sub(t.wave) < waveMost {
		m.withdraw(p, lost)
		p.again(lost[0].subject.id, until)
		return
	}
	t.wave = time.Time{}
	t.recent = slices.DeleteFunc(t.recent, func(at time.Time) bool { return now.Sub(at) >= lossWindow })
	if len(t.recent)+len(lost) > max(lossesAtLeast, (accepted(view)+len(t.recent))/lossShare) {
		m.withdraw(p, lost)
		p.writes = append(p.writes, lost...)
		if t.held == nil {
			t.held = map[string]time.Time{}
		}
		for _, w := range lost {
			if len(t.held) < maxHeld {
				t.held[w.subject.id] = now
			}
		}
	}
	for range lost {
		t.recent = append(t.recent, now)
	}
}

// moreLosses says until when others may join a wave: some accepted keys are gone from disk that have not settled yet.
func (m *machine) moreLosses(now time.Time, view state.View, lost []writing) (until time.Time) {
	for s, e := range m.edits {
		k, _ := m.kase(view, s, e.finding)
		at := e.since.Add(m.timing.Deletion)
		if k.isLoss(s) && now.Before(at) && !slices.ContainsFunc(lost, func(w writing) bool { return w.subject == s }) && at.After(until) {
			until = at
		}
	}
	return until
}

// withdraw takes the proposals about some subjects out of a plan.
func (m *machine) withdraw(p *plan, about []writing) {
	subjects := make(map[subject]bool, len(about))
	for _, w := range about {
		subjects[w.subject] = true
		p.open = append(p.open, w.subject.id)
	}
	p.proposals = slices.DeleteFunc(p.proposals, func(prop proposal) bool { return subjects[prop.subject] })
}

func accepted(view state.View) (n int) {
	view.Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			n++
		}
		return true
	})
	return n
}

// showHeld tells others which keys are held, after a round.
func (l *loop) showHeld(before int) {
	if l.forget.Swap(false) {
		clear(l.m.losses.held)
	}
	ids := slices.Sorted(maps.Keys(l.m.losses.held))
	l.heldKeys.Store(&ids)
	if len(ids) > before {
		l.log.Error("accepted keys that were taken away on this host were written back: too many at once", "count", len(ids),
			"fix", "saltclusterctl keys held")
	}
}

// Held lists the minions whose accepted keys were taken away on this host, too many at once, and written back; nobody has decided about
// them since.
func (d *Dir) Held() []string {
	if ids := d.heldKeys.Load(); ids != nil {
		return *ids
	}
	return nil
}

// Forget takes what Held lists for a mistake that nobody has to decide about: the keys stay.
func (d *Dir) Forget() {
	d.forget.Store(true)
	d.heldKeys.Store(nil)
}

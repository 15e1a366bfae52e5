package keydir

import (
	"time"

	"saltclusterd/consensus/state"
)

const (
	// deniedState stands for a denied key, which has no state of its own.
	deniedState = state.KeyPending
	// deniedEvery bounds how often denied keys of one id are proposed: whoever offers another key with each sign-in must
	// not fill the log.
	deniedEvery = 5 * time.Second
)

// stateOf gathers what a decision about s depends on, and the text of its key in consensus.
func (m *machine) stateOf(view state.View, s subject, f finding) (k keyState, text string) {
	k = keyState{
		disk: f.entry, garbage: f.garbage, twice: f.twice, modified: f.modified.Add(-m.clockAhead), stale: m.base.Stale,
	}
	k.base, k.hasBase = m.base.baseOf(s)
	if s.denied {
		if d, ok := view.Denied(s.id); ok {
			k.cons, k.rev, text = entry{deniedState, printOf(d.Pub)}, d.Rev, d.Pub
		}
		// Cleared ones are not remembered: while the disk is stale (joining), a left-over is taken for one.
		k.known = k.cons != entry{} || k.stale == joining
		k.current = k.rev == k.base.Rev
		return k, text
	}
	k.rev = view.KeyRev(s.id)
	k.known = k.rev != 0
	if d, ok := view.Denied(s.id); ok {
		k.denied = printOf(d.Pub)
	}
	if key, ok := view.Key(s.id); ok {
		k.cons, text = entry{key.State, printOf(key.Pub)}, key.Pub
		k.decided, k.again = m.dateOf(key.Audit), key.Again != 0
		k.first = key.Again == 0 && view.Level() >= state.LevelLives && view.TombstoneFloor() <= m.base.Seen
	} else if t, ok := view.Tombstone(s.id); ok {
		k.deleted = m.dateOf(t.Audit)
	}
	switch {
	case k.hasBase:
		k.current = k.rev == k.base.Rev
	case k.rev == 0:
		// Deletions may have been forgotten which this disk has not followed yet.
		k.current = view.TombstoneFloor() <= m.base.Seen
	default:
		k.current = k.cons == entry{} && k.rev <= m.base.Seen
	}
	return k, text
}

// maxAhead is how far in the future a decision may be dated, because clocks differ.
const maxAhead = 10 * time.Minute

// dateOf returns when something was decided. A date in the future is that of a wrong clock, and tells nothing: until it
// has come, every file would look older.
func (m *machine) dateOf(a state.Audit) time.Time {
	at := time.UnixMilli(a.At)
	if at.Sub(m.now.Add(-m.clockAhead)) > maxAhead {
		return time.Time{}
	}
	return at
}

// waitUntil says until when to wait with a step because the disk may be in the middle of a change; zero: do not wait.
func (m *machine) waitUntil(now time.Time, s subject, f finding, k keyState, d step) time.Time {
	if !k.current && d.verdict == write || k.stale != fresh && d.verdict == write {
		return time.Time{} // whatever it becomes, consensus wins
	}
	e, ok := m.edits[s]
	if !ok || e.finding != f {
		e = edit{f, now}
		m.edits[s] = e
	}
	need := m.timing.Settle
	switch {
	case f.twice || f.garbage || f.temp:
		need = m.timing.InvalidWait
	case f.entry == entry{}:
		need = m.timing.Deletion
	}
	if at := e.since.Add(need); now.Before(at) {
		return at
	}
	return time.Time{}
}

// noteAgreed notes that disk and consensus were the same about s. It returns false if that is nothing new.
func (m *machine) noteAgreed(s subject, v based) bool {
	if old, ok := m.base.baseOf(s); ok && old == v {
		return false
	}
	m.base.setBase(s, v)
	m.dirty = true
	return true
}

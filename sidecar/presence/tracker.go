package presence

import (
	"maps"
	"slices"
	"time"
)

// Grace is for how long a minion must not be alive before it is lost: longer than it takes a minion whose node was
// killed to come back by another one.
const Grace = time.Minute

// Turn is one look at who is there, as events tell it.
type Turn struct {
	Present   []string // sorted, as the others
	New, Lost []string
}

// Mark is what was told last. The larger one is the newer.
type Mark struct {
	Term uint64   `json:"term"` // of the leader that told it
	N    uint64   `json:"n"`    // the how manieth it was
	IDs  []string `json:"ids"`
}

// Newer says whether it is newer than another one.
func (m Mark) Newer(than Mark) bool { return m.Term > than.Term || m.Term == than.Term && m.N > than.N }

// Tracker remembers when minions were alive and what was told of them. It is its caller's to lock.
type Tracker struct {
	alive map[string]time.Time // when each was alive last
	told  Mark
}

// NewTracker returns a Tracker that continues from what was told last.
func NewTracker(told Mark, now time.Time) *Tracker {
	t := &Tracker{alive: map[string]time.Time{}}
	t.Hear(told, now)
	return t
}

// Told is what was told last, by whomever.
func (t *Tracker) Told() Mark { return t.told }

// Hear takes what another node has told, if that is news. The minions that were present then have the grace.
func (t *Tracker) Hear(m Mark, now time.Time) {
	if !m.Newer(t.told) {
		return
	}
	t.told = m
	for _, id := range m.IDs {
		if _, known := t.alive[id]; !known {
			t.alive[id] = now
		}
	}
}

// See notes who is alive now.
func (t *Tracker) See(list []Minion, now time.Time) {
	for _, m := range list {
		if m.Alive {
			t.alive[m.ID] = now
		}
	}
	maps.DeleteFunc(t.alive, func(_ string, at time.Time) bool { return now.Sub(at) > 2*Grace })
}

// Take is the turn of a leader: what it is to tell now.
func (t *Tracker) Take(term uint64, now time.Time) Turn {
	var turn Turn
	was := make(map[string]bool, len(t.told.IDs))
	for _, id := range t.told.IDs {
		was[id] = true
	}
	for id, at := range t.alive {
		if now.Sub(at) > Grace {
			continue
		}
		turn.Present = append(turn.Present, id)
		if !was[id] {
			turn.New = append(turn.New, id)
		}
		delete(was, id)
	}
	turn.Lost = slices.Sorted(maps.Keys(was))
	slices.Sort(turn.Present)
	slices.Sort(turn.New)
	if len(turn.New)+len(turn.Lost) > 0 || term != t.told.Term {
		n := t.told.N + 1
		if term != t.told.Term {
			n = 1
		}
		t.told = Mark{Term: term, N: n, IDs: turn.Present}
	}
	return turn
}

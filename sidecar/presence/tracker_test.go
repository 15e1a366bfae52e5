package presence

import (
	"strings"
	"testing"
	"time"
)

func alive(ids string) (list []Minion) {
	for id := range strings.FieldsSeq(ids) {
		list = append(list, Minion{Sighting: Sighting{ID: id}, Alive: true})
	}
	return list
}

// check takes a turn.
func check(t *testing.T, tr *Tracker, term uint64, at time.Time, present, fresh, lost string) {
	t.Helper()
	turn := tr.Take(term, at)
	got := strings.Join(turn.Present, " ") + "/" + strings.Join(turn.New, " ") + "/" + strings.Join(turn.Lost, " ")
	if want := present + "/" + fresh + "/" + lost; got != want {
		t.Errorf("at %s: %s, not %s", at.Sub(now), got, want)
	}
}

func TestTracker(t *testing.T) {
	tr := NewTracker(Mark{}, now)
	tr.See(alive("b a"), now)
	check(t, tr, 1, now, "a b", "a b", "")
	check(t, tr, 1, now.Add(time.Second), "a b", "", "")
	tr.See(alive("a"), now.Add(Grace))
	check(t, tr, 1, now.Add(Grace), "a b", "", "") // it may be on its way to another node
	tr.See(alive("a"), now.Add(Grace+time.Second))
	check(t, tr, 1, now.Add(Grace+time.Second), "a", "", "b")
	tr.See(alive("a b"), now.Add(2*Grace))
	check(t, tr, 1, now.Add(2*Grace), "a b", "b", "")
	if m := tr.Told(); m.Term != 1 || m.N != 3 || strings.Join(m.IDs, " ") != "a b" {
		t.Errorf("told: %+v", m)
	}
}

// Another leader goes on where the last one ended: nothing is told twice, and nothing is forgotten.
func TestTrackerOfTheNextLeader(t *testing.T) {
	first, next := NewTracker(Mark{}, now), NewTracker(Mark{}, now)
	for _, tr := range []*Tracker{first, next} {
		tr.See(alive("a b"), now)
	}
	check(t, first, 1, now, "a b", "a b", "")
	next.Hear(first.Told(), now)
	for _, tr := range []*Tracker{first, next} {
		tr.See(alive("a"), now.Add(2*Grace))
	}
	check(t, next, 2, now.Add(2*Grace), "a", "", "b")
	first.Hear(next.Told(), now.Add(2*Grace))
	check(t, first, 3, now.Add(2*Grace), "a", "", "")
	old := next.Told()
	next.Hear(first.Told(), now.Add(2*Grace))
	next.Hear(old, now.Add(2*Grace))
	if m := next.Told(); m.Term != 3 {
		t.Errorf("what was told before is news: %+v", m)
	}
}

// After a restart minions have time to come back.
func TestTrackerAfterARestart(t *testing.T) {
	tr := NewTracker(Mark{Term: 4, N: 7, IDs: []string{"a", "b"}}, now)
	check(t, tr, 4, now.Add(Grace/2), "a b", "", "")
	tr.See(alive("a"), now.Add(Grace/2))
	check(t, tr, 4, now.Add(Grace+time.Second), "a", "", "b")
}

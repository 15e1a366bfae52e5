package hlc

import (
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
)

// host is a host whose wall clock is off by skew and can be set, and whose other clock cannot.
type host struct {
	now  *time.Time
	skew time.Duration
	ref  *Reference
}

var epoch = time.UnixMilli(1_700_000_000_000)

// newHosts returns hosts that have all read one another's clocks, and the true time.
func newHosts(skews ...time.Duration) ([]*host, *time.Time) {
	now := epoch
	var all []*host
	for _, skew := range skews {
		h := &host{now: &now, skew: skew}
		h.ref = NewReference(func() time.Time { return h.now.Add(h.skew) }, func() time.Duration { return h.now.Sub(epoch) })
		all = append(all, h)
	}
	readAll(all)
	return all, &now
}

func readAll(all []*host) {
	for i, h := range all {
		for j, peer := range all {
			if i != j {
				h.ref.Note(node.ID(rune('a'+j)), peer.now.Add(peer.skew), h.ref.Elapsed())
			}
		}
		h.ref.Settle()
	}
}

func TestReference_Time(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		name  string
		skews []time.Duration // the first host is asked
		want  time.Duration
	}{
		{"alone", []time.Duration{25 * m}, 25 * m},
		{"two, itself ahead", []time.Duration{25 * m, 0}, 0},
		{"two, itself behind: both go by the lower", []time.Duration{-25 * m, 0}, -25 * m},
		{"three, itself ahead", []time.Duration{25 * m, 0, 0}, 0},
		{"three, itself behind", []time.Duration{-25 * m, 0, 0}, 0},
		{"three, another ahead", []time.Duration{0, 25 * m, 0}, 0},
		{"three, all apart", []time.Duration{25 * m, 0, -25 * m}, 0},
		{"four, two ahead", []time.Duration{25 * m, 25 * m, 0, 0}, 0},
		{"a clock of another century", []time.Duration{0, 150 * 365 * 24 * time.Hour, 0}, 0},
	} {
		all, now := newHosts(c.skews...)
		check.Equal(t, all[0].ref.Time().Sub(*now), c.want, c.name)
	}
}

func TestReference_BeforeThePeersAreAsked(t *testing.T) {
	r := NewReference(time.Now, func() time.Duration { return 0 })
	if got := r.Time(); !got.IsZero() {
		t.Errorf("time %s before Settle", got)
	}
	if r.Guess().IsZero() {
		t.Error("no guess")
	}
}

// A node that is cut off goes on by what it knew of the others when its own clock is set.
func TestReference_CutOff(t *testing.T) {
	all, now := newHosts(0, 0, 0)
	*now = now.Add(time.Hour)
	all[0].skew = 25 * time.Minute
	check.Equal(t, all[0].ref.Time().Sub(*now), 0, "ahead")
}

func TestReference_Offsets(t *testing.T) {
	all, now := newHosts(25*time.Minute, 0, time.Second)
	got := all[0].ref.Offsets("a", time.Minute)
	if len(got) != 3 || got["a"] != 0 || got["b"] != -25*time.Minute || got["c"] != time.Second-25*time.Minute {
		t.Errorf("%v", got)
	}
	*now = now.Add(2 * time.Minute)
	all[0].ref.Note("c", now.Add(time.Second), all[0].ref.Elapsed())
	if got := all[0].ref.Offsets("a", time.Minute); len(got) != 2 {
		t.Errorf("with an old reading: %v", got)
	}
	all[0].ref.Keep([]node.ID{"b"})
	if got := all[0].ref.Offsets("a", time.Hour); len(got) != 2 || got["c"] != 0 {
		t.Errorf("after Keep: %v", got)
	}
	all[0].ref.Note("b", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), all[0].ref.Elapsed())
	if got := all[0].ref.Offsets("a", time.Hour)["b"]; got < 50*365*24*time.Hour {
		t.Errorf("the year 9999 is %s ahead", got)
	}
}

func TestJudge(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		name     string
		offsets  map[node.ID]time.Duration
		off      map[node.ID]time.Duration
		majority bool
	}{
		{"nobody", nil, nil, true},
		{"one", map[node.ID]time.Duration{"a": 0}, nil, true},
		{"two agree", map[node.ID]time.Duration{"a": 0, "b": m}, nil, true},
		{"two differ", map[node.ID]time.Duration{"a": 0, "b": 25 * m}, map[node.ID]time.Duration{"b": 25 * m}, false},
		{"one of three ahead", map[node.ID]time.Duration{"a": 0, "b": 25 * m, "c": -time.Second},
			map[node.ID]time.Duration{"b": 25 * m}, true},
		{"seen by the one", map[node.ID]time.Duration{"a": 0, "b": 10 * m, "c": 10 * m},
			map[node.ID]time.Duration{"a": -10 * m}, true},
		{"below the bound", map[node.ID]time.Duration{"a": 0, "b": m, "c": 0}, nil, true},
		{"three differ", map[node.ID]time.Duration{"a": 0, "b": 5 * m, "c": 10 * m},
			map[node.ID]time.Duration{"a": -5 * m, "c": 5 * m}, false},
		{"two and two", map[node.ID]time.Duration{"a": 0, "b": 0, "c": 5 * m, "d": 5 * m},
			map[node.ID]time.Duration{"c": 5 * m, "d": 5 * m}, false},
	} {
		off, majority := Judge(c.offsets, m)
		got := map[node.ID]time.Duration{}
		for _, o := range off {
			got[o.Node] = o.Ahead
		}
		same := len(got) == len(c.off)
		for id, ahead := range c.off {
			same = same && got[id] == ahead
		}
		if !same || majority != c.majority {
			t.Errorf("%s: %v, majority %t", c.name, off, majority)
		}
	}
}

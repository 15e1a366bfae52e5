package presence

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// heard is who was heard of: "id address minutes-ago".
func heard(t *testing.T, lines ...string) map[string]Sighting {
	t.Helper()
	out := map[string]Sighting{}
	for _, l := range lines {
		var id, from string
		var minutes int
		if _, err := fmt.Sscan(l, &id, &from, &minutes); err != nil {
			t.Fatal(err)
		}
		out[id] = Sighting{ID: id, From: addr(from), At: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	return out
}

func from(a string, count, young int) Group {
	return Group{Node: "m1", From: addr(a), Count: count, Young: young}
}

// words is a judgement in short: alive ids, those in doubt with a question mark.
func words(list []Minion) string {
	var out []string
	for _, m := range list {
		switch {
		case m.Alive && m.Doubt:
			out = append(out, m.ID+"?")
		case m.Alive:
			out = append(out, m.ID)
		}
	}
	return strings.Join(out, " ")
}

func TestJudge(t *testing.T) {
	ids := []string{"a", "b", "c"}
	long := int(Window/time.Minute) + 5
	dropped := map[netip.Addr]time.Time{addr("10.0.0.1"): now.Add(-10 * time.Minute)}
	for _, c := range []struct {
		name  string
		scene Scene
		want  string
	}{
		{"nobody was heard of", Scene{Groups: []Group{from("10.0.0.1", 3, 3)}}, ""},
		{"addresses of their own, however long ago they said something", Scene{
			Seen:   heard(t, "a 10.0.0.1 1", "b 10.0.0.2 9999", "c 10.0.0.3 5"),
			Groups: []Group{from("10.0.0.1", 1, 0), from("10.0.0.2", 1, 0)},
		}, "a b"},
		{"who has just been heard of and has no connection is gone", Scene{Seen: heard(t, "a 10.0.0.1 0")}, ""},
		{"an address in both notations", Scene{Seen: heard(t, "a 10.0.0.1 1"),
			Groups: []Group{from("::ffff:10.0.0.1", 1, 0)}}, "a"},
		{"one address, enough connections", Scene{
			Seen: heard(t, "a 10.0.0.1 1", "b 10.0.0.1 9999", "c 10.0.0.1 5"), Groups: []Group{from("10.0.0.1", 3, 0)},
		}, "a b c"},
		{"on several nodes", Scene{
			Seen:   heard(t, "a 10.0.0.1 1", "b 10.0.0.1 9999"),
			Groups: []Group{from("10.0.0.1", 1, 0), {Node: "m2", From: addr("10.0.0.1"), Count: 1}},
		}, "a b"},
		{"too few connections: all that said something lately", Scene{
			Seen: heard(t, "a 10.0.0.1 1", "b 10.0.0.1 30", "c 10.0.0.1 9999"), Groups: []Group{from("10.0.0.1", 1, 0)},
		}, "a? b?"},
		{"too few connections, and nobody said anything: as many as there are", Scene{
			Seen: heard(t, "a 10.0.0.1 900", "b 10.0.0.1 800", "c 10.0.0.1 9999"), Groups: []Group{from("10.0.0.1", 2, 0)},
		}, "a? b?"},
		{"the others were heard of since one connection ended", Scene{
			Seen: heard(t, "a 10.0.0.1 1", "b 10.0.0.1 15", "c 10.0.0.1 9"), Groups: []Group{from("10.0.0.1", 2, 0)},
			Fewer: dropped,
		}, "a c"},
		{"not all of them yet", Scene{
			Seen: heard(t, "a 10.0.0.1 1", "b 10.0.0.1 15", "c 10.0.0.1 15"), Groups: []Group{from("10.0.0.1", 2, 0)},
			Fewer: dropped,
		}, "a? b? c?"},
		{"more than there are connections: subminions of one process", Scene{
			Seen: heard(t, "a 10.0.0.1 1", "b 10.0.0.1 2", "c 10.0.0.1 3"), Groups: []Group{from("10.0.0.1", 1, 0)},
			Fewer: dropped,
		}, "a b c"},
		{"moved to another address, and not heard of from there", Scene{
			Seen: heard(t, "a 10.0.0.1 10", "b 10.0.0.2 5"), Groups: []Group{from("10.0.0.9", 1, 1), from("10.0.0.2", 1, 0)},
		}, "a? b"},
		{"one may have moved: who was heard of last", Scene{
			Seen: heard(t, "a 10.0.0.1 10", "b 10.0.0.2 5"), Groups: []Group{from("10.0.0.9", 1, 1)},
		}, "b?"},
		{"an old connection of nobody explains nothing",
			Scene{Seen: heard(t, "a 10.0.0.1 10"), Groups: []Group{from("10.0.0.9", 1, 0)}}, ""},
		{"nor does a young one whoever was not heard of for long", Scene{
			Seen: heard(t, fmt.Sprint("a 10.0.0.1 ", long)), Groups: []Group{from("10.0.0.9", 1, 1)},
		}, ""},
		{"it says who it is", Scene{Named: []Named{{Node: "m1", From: addr("10.0.0.1"), Hash: Hash("b")}}}, "b"},
		{"and leaves the others their connections", Scene{
			Seen: heard(t, "a 10.0.0.1 9999", "b 10.0.0.1 1"), Groups: []Group{from("10.0.0.1", 1, 0)},
			Named: []Named{{Hash: Hash("b")}},
		}, "a b"},
		{"what a node that is gone said last counts, but explains nobody's absence", Scene{
			Seen:   heard(t, "a 10.0.0.1 1", "b 10.0.0.2 1"),
			Groups: []Group{{Node: "m2", From: addr("10.0.0.1"), Count: 2, Young: 2, Past: true}},
		}, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.scene.IDs = ids
			if got := words(Judge(c.scene, now)); got != c.want {
				t.Errorf("alive: %q, not %q", got, c.want)
			}
		})
	}
}

func TestJudgeSaysWhere(t *testing.T) {
	got := Judge(Scene{
		IDs: []string{"a", "stranger's"}, Seen: heard(t, "a 10.0.0.1 1", "deleted 10.0.0.1 1"),
		Groups: []Group{from("10.0.0.1", 1, 0)},
	}, now)
	if len(got) != 2 || got[0].On != "m1" || got[0].From != addr("10.0.0.1") || got[0].Doubt || got[1].Alive ||
		got[1].ID != "stranger's" {
		t.Errorf("%+v", got)
	}
}

func TestHash(t *testing.T) {
	if h := Hash("web1"); h != "977588a87e10582032716712ccf5d85d18a5fccf" || !IsHash(h) {
		t.Errorf("%q", h)
	}
	for _, topic := range []string{"", "broadcast", "syndic", strings.Repeat("x", 40)} {
		if IsHash(topic) {
			t.Errorf("%q is one", topic)
		}
	}
}

func TestDrops(t *testing.T) {
	var d Drops
	a, b := addr("10.0.0.1"), addr("10.0.0.2")
	if got := d.See([]Group{from("10.0.0.1", 2, 0), from("10.0.0.2", 1, 0)}, now); len(got) != 0 {
		t.Errorf("at first: %v", got)
	}
	then := now.Add(time.Minute)
	got := d.See([]Group{from("10.0.0.1", 1, 0), {Node: "m2", From: b, Count: 1}}, then)
	if len(got) != 1 || !got[a].Equal(then) {
		t.Errorf("one went, one moved: %v", got)
	}
	if got := d.See([]Group{from("10.0.0.1", 5, 0), from("10.0.0.2", 1, 0)}, then.Add(time.Minute)); !got[a].Equal(then) {
		t.Errorf("more came: %v", got)
	}
	if got := d.See(nil, then.Add(2*Window)); got[a] != then.Add(2*Window) || len(got) != 2 {
		t.Errorf("all gone: %v", got)
	}
	if got := d.See(nil, then.Add(4*Window)); len(got) != 0 {
		t.Errorf("long ago: %v", got)
	}
}

func BenchmarkJudge(b *testing.B) {
	s := Scene{Seen: map[string]Sighting{}}
	for i := range 10000 {
		id, a := fmt.Sprint("minion-", i), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.IDs = append(s.IDs, id)
		s.Seen[id] = Sighting{ID: id, At: now, From: a}
		s.Groups = append(s.Groups, Group{Node: "m1", From: a, Count: 1})
	}
	for b.Loop() {
		Judge(s, now)
	}
}

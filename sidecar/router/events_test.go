package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// events is the list of a _minion_event with these tags.
func events(tags ...string) []byte {
	out := saltwire.AppendArrayHeader(nil, len(tags))
	for _, tag := range tags {
		out = saltwire.AppendStr(saltwire.AppendRaw(saltwire.AppendMapHeader(out, 1), "tag"), tag)
	}
	return out
}

func withRules(t *testing.T, v View, leader node.ID) View {
	t.Helper()
	rules, err := NewEventRules([]EventRule{
		{"my/origin/*", "origin"}, {"my/all", "all"}, {"my/leader/[ab]", "leader"}, {"my/*", "owner"},
		{"salt/job/*", "leader"},
	})
	require.NoError(t, err)
	v.Events, v.Leader = rules, leader
	return v
}

func parts(d Decision) string {
	if d.Kind != Split {
		return text(d)
	}
	var out []string
	for _, p := range d.Parts {
		s := text(Decision{Kind: p.Kind, Node: p.Node, Others: p.Others})
		if p.Copy {
			s += " copy"
		}
		if p.Events != nil {
			s += fmt.Sprint(" ", p.Events)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestEventRules(t *testing.T) {
	type peek = saltwire.Peek
	const jid2 = "20260101000000000002" // m2's
	for _, c := range []struct {
		name   string
		p      peek
		v      View
		leader node.ID
		want   string
	}{
		{"no rule", peek{Tag: "other"}, view(), "m2", "node m3 +m1 +m2"},
		{"owner", peek{Tag: "my/x"}, view(), "m2", "node m3 +m1 +m2"},
		{"origin", peek{Tag: "my/origin/a/b"}, view(), "m2", "local +m3 +m2"},
		{"origin, master down", peek{Tag: "my/origin/a"}, view(masterDown(0)), "m2", "node m3 +m2"},
		{"origin, of a job", peek{Tag: "my/origin/a", JID: jid2}, view(), "m3", "node m2 +m3 +m1"},
		{"leader", peek{Tag: "my/leader/a"}, view(), "m2", "node m2 +m3 +m1"},
		{"this node leads", peek{Tag: "my/leader/b"}, view(), "m1", "local +m3 +m2"},
		{"not matched by the set", peek{Tag: "my/leader/c"}, view(), "m2", "node m3 +m1 +m2"},
		{"leader's master down", peek{Tag: "my/leader/a"}, view(masterDown(1)), "m2", "node m3 +m1"},
		{"leader is a witness", peek{Tag: "my/leader/a"}, view(), "w", "node m3 +m1 +m2"},
		{"no leader", peek{Tag: "my/leader/a"}, view(), "", "node m3 +m1 +m2"},
		{"progress for the leader", peek{Tag: "salt/job/" + jid2 + "/prog/web/1"}, view(), "m1", "local +m3 +m2"},
		{"all", peek{Tag: "my/all"}, view(), "m2", "local, node m3 copy, node m2 copy"},
		{"all, without this master", peek{Tag: "my/all"}, view(masterDown(0)), "m2", "node m3, node m2 copy"},
		{"all, without any master", peek{Tag: "my/all"}, view(masterDown(0), masterDown(1), masterDown(2)), "m2", "refuse"},

		{"a list of one kind", peek{Events: events("my/x", "other")}, view(), "m2", "node m3 +m1 +m2"},
		{"a list for all", peek{Events: events("my/all", "my/all")}, view(), "m2", "local, node m3 copy, node m2 copy"},
		{"the list counts, not the tag", peek{Tag: "my/all", Events: events("my/x")}, view(), "m2", "node m3 +m1 +m2"},
		{"an empty list", peek{Tag: "my/all", Events: events()}, view(), "m2", "node m3 +m1 +m2"},
		{"no events", peek{Events: []byte{0x91, 0x01}}, view(), "m2", "node m3 +m1 +m2"},
		{
			"a mixed list", peek{Events: events("my/leader/a", "my/x", "my/all", "my/origin/1", "other")}, view(), "m2",
			"node m2 +m3 +m1 [0], node m3 +m1 +m2 [1 4], local [2], node m3 copy [2], node m2 copy [2], local +m3 +m2 [3]",
		},
		{"a mixed list without a master", peek{Events: events("my/x", "my/all")},
			view(masterDown(0), masterDown(1), masterDown(2)), "m2", "refuse"},
	} {
		c.p.Cmd, c.p.ID = "_minion_event", "web"
		if got := parts(Decide(c.p, withRules(t, c.v, c.leader))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestEveryEventOnce: however a list is split, each event goes one way, or to each master once.
func TestEveryEventOnce(t *testing.T) {
	v := withRules(t, view(), "m2")
	rapid.Check(t, func(rt *rapid.T) {
		tags := rapid.SliceOfN(rapid.SampledFrom([]string{"my/all", "my/x", "my/origin/1", "my/leader/a", "other", ""}), 1,
			30).Draw(rt, "tags")
		d := Decide(saltwire.Peek{Cmd: "_minion_event", ID: "web", Events: events(tags...)}, v)
		if d.Kind != Split {
			return // all of them one way
		}
		went := make([]map[node.ID]int, len(tags))
		for i := range went {
			went[i] = map[node.ID]int{}
		}
		for _, p := range d.Parts {
			n := p.Node
			if p.Kind == ToLocal {
				n = v.Self
			}
			for i := range tags {
				if p.Events == nil || slices.Contains(p.Events, i) {
					went[i][n]++
				}
			}
		}
		for i, tag := range tags {
			want := 1
			if tag == "my/all" {
				want = 3
			}
			if len(went[i]) != want {
				rt.Fatalf("event %d, %s, goes to %v", i, tag, went[i])
			}
			for n, times := range went[i] {
				if times != 1 {
					rt.Fatalf("event %d, %s, goes to %s %d times", i, tag, n, times)
				}
			}
		}
	})
}

func TestRulesThatAreNone(t *testing.T) {
	for _, r := range []EventRule{{"[z-a]", "all"}, {"a", "nobody"}} {
		if _, err := NewEventRules([]EventRule{r}); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	for _, name := range EventRouteNames {
		if _, err := NewEventRules([]EventRule{{"*", name}}); err != nil {
			t.Error(err)
		}
	}
}

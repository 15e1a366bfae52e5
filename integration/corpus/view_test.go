package corpus

import (
	"os"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestDiff(t *testing.T) {
	asked := []Request{{Cmd: "a"}, {Cmd: "b"}}
	bare := &View{
		Asked: asked, Replies: []string{"1", "2"}, Events: []string{"x", "x", "y"},
		Files: map[string][]string{"f": {"1"}, "g": {"2", "3"}},
	}
	same := &View{
		Asked: asked, Replies: []string{"1", "2"}, Events: []string{"x", "y", "x"},
		Files: map[string][]string{"f": {"1"}, "g": {"3", "2"}, "jobs/1/.minions.p": {"[]"}},
	}
	if d, meant := Diff(bare, same); len(d) != 0 || len(meant) != 1 || meant["The empty list of minions"] != 1 {
		t.Errorf("%v, %v", d, meant)
	}
	other := &View{
		Asked: asked, Replies: []string{"1", "3"}, Events: []string{"x", "y", "z"},
		Files: map[string][]string{"f": {"2"}, "g": {"3"}, "h": {"1"}},
	}
	want := []Difference{
		{Where: "reply", Asked: asked[1].String(), Cmd: "b", Bare: "2", Ours: "3"},
		{Where: "event", Bare: "x", Ours: nothing}, {Where: "event", Bare: nothing, Ours: "z"},
		{Where: "file f", Bare: "1", Ours: nothing}, {Where: "file f", Bare: nothing, Ours: "2"},
		{Where: "file g", Bare: "2", Ours: nothing}, {Where: "file h", Bare: nothing, Ours: "1"},
	}
	got, meant := Diff(bare, other)
	if !slices.Equal(got, want) || len(meant) != 0 {
		t.Errorf("%v, %v", got, meant)
	}
}

// A difference that is meant is meant where it is and of whom it is.
func TestMeant(t *testing.T) {
	pillar := Difference{
		Where: "reply", Cmd: "_pillar", Mutation: Mutation{Kind: OtherKind, Field: "pillarenv", Value: "{}"}, Ours: badLoad,
	}
	refresh := Difference{Where: "event",
		Bare: `minion/refresh/corpus {"Minion data cache refresh":"corpus","_stamp":"<time>"}`, Ours: nothing}
	job := Difference{Where: "event", Bare: `salt/job/[]/ret/corpus {"cmd":"_return","jid":[]}`, Ours: nothing}
	file := Difference{Where: `file jobs/of "'../'"/.load.p`, Bare: "x", Ours: nothing}
	refused := map[string]int{}
	check.Equal(t, meant(refresh, refused), "", "before any pillar is refused")
	of := Mutation{Kind: Within, Field: "events", Value: "0", Mark: "variant-1-"}
	list := Difference{Where: "reply", Cmd: "_minion_event", Mutation: of, Bare: raised, Ours: none}
	first := Difference{Where: "event", Cmd: "_minion_event", Mutation: of, Bare: "a/variant-1- {}", Ours: nothing}
	check.Equal(t, meant(first, refused), "", "an event of a list that was not refused")
	forged := Difference{Where: "event", Bare: `salt/key {"cmd":"_minion_event"}`, Ours: nothing}
	for _, d := range []Difference{pillar, refresh, job, file, forged, list, first} {
		if meant(d, refused) == "" {
			t.Errorf("not meant: %v", d)
		}
	}
	for name, d := range map[string]Difference{
		"one refresh too many": refresh,
		"another reply":        {Where: "reply", Cmd: "_pillar", Mutation: pillar.Mutation, Ours: "{}"},
		"another command":      {Where: "reply", Cmd: "_return", Mutation: pillar.Mutation, Ours: badLoad},
		"another field": {Where: "reply", Cmd: "_pillar",
			Mutation: Mutation{Kind: OtherKind, Field: "grains", Value: "{}"}, Ours: badLoad},
		"a recorded request": {Where: "reply", Cmd: "_pillar", Ours: badLoad},
		"of a usual job": {Where: "event", Bare: `salt/job/20200101000000000000/ret/corpus {"cmd":"_return"}`,
			Ours: nothing},
		"a master's own event": {Where: "event", Bare: `salt/key {"act":"accept"}`, Ours: nothing},
		"an event too many":    {Where: "event", Bare: nothing, Ours: job.Bare},
		"a file of such a job": {Where: "file jobs/20200101000000000000/.load.p", Bare: "x", Ours: nothing},
		"a list with minions":  {Where: "file jobs/20200101000000000000/.minions.p", Bare: nothing, Ours: `["a"]`},
	} {
		check.Equal(t, meant(d, refused), "", name, "is meant")
	}
}

func TestScrub(t *testing.T) {
	s := Scrub{Words: map[string]string{"/tmp/lab": "<lab>", "/tmp/lab/ours": "<host>"},
		Jobs: map[string]bool{"20260101000000000000": true}}
	const text, want = "/tmp/lab/ours/x /tmp/lab/y 20260101000000000000 20260101000000000001 2026-11-22T10:11:12.123456", "<host>/x <lab>/y 20260101000000000000 <jid> <time>"
	check.Equal(t, s.Text(text), want)
	check.Equal(t, s.Value([]byte{0x82, 0xa1, 'b', 0xc4, 0x01, 'x', 0xa1, 'a', 0x01}), `{"a":1,"b":"x"}`)
	check.Equal(t, s.Value([]byte{0x81, 0x01, 0x01}), "raw 810101")
}

// Whoever reads the guide knows of everything that is meant to differ.
func TestIntendedIsWritten(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/differences.md")
	require.NoError(t, err)
	for _, e := range Intended {
		if !strings.Contains(string(text), "### "+e.What+"\n") {
			t.Errorf("docs/reference/differences.md has no %q", e.What)
		}
	}
	check.Equal(t, strings.Count(string(text), "\n### "), len(Intended), "it has")
}

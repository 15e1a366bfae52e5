package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/history"
)

// TestTallyKinds: each job × minion behind the load balancer counts for the fault that began last before it.
func TestTallyKinds(t *testing.T) {
	h := &history.History{
		Nodes: []string{"m1", "m2"}, Start: t0,
		Presences: []history.Presence{
			{Minion: "a", Roams: true, From: at(0), To: at(1000)}, {Minion: "b", Roams: true, From: at(0), To: at(1000)},
			{Minion: "played", Node: "m1", From: at(0), To: at(1000)},
		},
		Faults: []history.Fault{
			{Kind: "drain of m2 for 10s", Nodes: []string{"m2"}, Outlasted: true, Start: at(100), End: at(110)},
			{Kind: "kill of m2 for 1s", Nodes: []string{"m2"}, Outlasted: true, Start: at(200), End: at(210)},
			{Kind: "drain of m2 for 10s", Nodes: []string{"m2"}, Outlasted: true, Start: at(300), End: at(310)},
		},
	}
	for i, second := range []float64{50, 105, 150, 205, 305} {
		jid := fmt.Sprint("j", i)
		h.Publications = append(h.Publications, history.Publication{Number: i, Node: "m1", Start: at(second), End: at(second + 0.1),
			Outcome: history.OK, Jid: jid})
		h.Runs = append(h.Runs, history.Run{Minion: "a", Jid: jid, At: at(second + 0.2)})
		h.Cache = append(h.Cache, history.Cached{Node: "m1", Jid: jid, Minion: "a"})
		if i != 3 {
			h.Runs = append(h.Runs, history.Run{Minion: "b", Jid: jid, At: at(second + 20)})
			h.Cache = append(h.Cache, history.Cached{Node: "m2", Jid: jid, Minion: "b"}) // not the publisher's
		}
	}
	got := history.TallyKinds(h, history.DefaultOptions())
	want := []history.Tally{
		{Kind: "drain", Faults: 2, Owed: 6, Late: 3, Returned: 3},
		{Kind: "kill", Faults: 1, Owed: 2, Missed: 1, Returned: 1},
		{Kind: "none", Owed: 2, Late: 1, Returned: 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	var b strings.Builder
	if err := history.PrintTally(&b, got); err != nil || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v: %s", err, b.String())
	}
}

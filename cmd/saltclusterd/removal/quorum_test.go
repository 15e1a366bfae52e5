package removal

import (
	"strings"
	"testing"

	"saltclusterd/gossip/node"
)

func TestQuorum_Refuse(t *testing.T) {
	for _, tc := range []struct {
		name     string
		voters   string
		down     string
		witness  string
		learners string
		remove   node.ID
		aside    int
		want     string // in the sentence; empty: it may be removed
		hint     string
		forcible bool
	}{
		{name: "one of three", voters: "a b c", remove: "b"},
		{name: "the dead one of three", voters: "a b c", down: "c", remove: "c"},
		{name: "a living one beside a dead one", voters: "a b c", down: "c", remove: "b",
			want: "without b only 1 of 2 voters would be left, and 2 are needed: c is down",
			hint: "saltclusterctl remove c", forcible: true},
		{name: "one of five beside two dead ones", voters: "a b c d e", down: "d e", remove: "c", want: "d and e are down",
			hint: "saltclusterctl remove d", forcible: true},
		{name: "one of two", voters: "a b", remove: "a"},
		{name: "a learner beside a dead voter", voters: "a b c", down: "c", learners: "d", remove: "d"},
		{name: "the last one", voters: "a", remove: "a", want: "last node with a salt-master"},
		{name: "the only voter", voters: "a", learners: "b", remove: "a", want: "only node that votes"},
		{name: "the last master beside a witness", voters: "a w", witness: "w", remove: "a",
			want: "last node with a salt-master"},
		{name: "one with returns that are put aside", voters: "a b c", remove: "b", aside: 2,
			hint: "saltclusterctl returns list", forcible: true,
			want: "2 returns that its salt-master does not answer stay in state_dir/returns/unanswered"},
		{name: "one with returns beside a dead one", voters: "a b c", down: "c", remove: "b", aside: 2, want: "c is down",
			hint: "saltclusterctl remove c", forcible: true},
		{name: "a witness", voters: "a b w", witness: "w", remove: "w"},
	} {
		q := quorum{alive: map[node.ID]bool{}, aside: tc.aside}
		for _, id := range strings.Fields(tc.voters + " " + tc.learners) {
			q.alive[node.ID(id)] = !strings.Contains(tc.down, id)
			if !strings.Contains(tc.witness, id) {
				q.masters = append(q.masters, node.ID(id))
			}
		}
		for _, id := range strings.Fields(tc.voters) {
			q.voters = append(q.voters, node.ID(id))
		}
		got := q.refuse(tc.remove)
		switch {
		case (got == nil) != (tc.want == ""):
			t.Errorf("%s: %+v", tc.name, got)
		case got != nil && (!strings.Contains(got.sentence, tc.want) || !strings.Contains(got.hint, tc.hint) ||
			got.forcible != tc.forcible):
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestQuorum_Hint(t *testing.T) {
	for _, tc := range []struct {
		name          string
		voters, alive []node.ID
		want          string
	}{
		{"all are seen, none leads", []node.ID{"m1", "m2", "m3"}, []node.ID{"m1", "m2", "m3"},
			"wait some seconds"},
		{"one is away, which costs no majority", []node.ID{"m1", "m2", "m3"}, []node.ID{"m1", "m2"},
			"wait some seconds"},
		{"one of two is away", []node.ID{"m1", "m2"}, []node.ID{"m1"},
			"start saltclusterd on m2, or check the network on the peer port; if it is gone for good: "},
		{"two are away", []node.ID{"m1", "m2", "m3"}, []node.ID{"m1"},
			"start saltclusterd on m2 and m3, or check the network on the peer port; if they are gone for good: "},
	} {
		q := quorum{voters: tc.voters, alive: map[node.ID]bool{}}
		for _, id := range tc.alive {
			q.alive[id] = true
		}
		if got := q.hint(); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

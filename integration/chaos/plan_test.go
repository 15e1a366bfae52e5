package chaos

import (
	"slices"
	"testing"
)

func TestPlanFollowsFromItsSeed(t *testing.T) {
	kinds := Kinds()
	a, b, c := Plan(7, 3, 100, kinds), Plan(7, 3, 100, kinds), Plan(8, 3, 100, kinds)
	same := func(x, y []Step) bool {
		return slices.EqualFunc(x, y, func(s, t Step) bool { return s.String() == t.String() })
	}
	if !same(a, b) {
		t.Error("one seed, two plans")
	}
	if same(a, c) {
		t.Error("two seeds, one plan")
	}
	if !same(a[:10], Plan(7, 3, 10, kinds)) {
		t.Error("a longer plan begins otherwise")
	}
}

func TestPlanKeepsToItsKinds(t *testing.T) {
	byName := map[string]Kind{}
	for _, k := range Kinds() {
		byName[k.Name] = k
	}
	for _, nodes := range []int{3, 5} {
		seen := map[string]int{}
		for _, s := range Plan(42, nodes, 400, Kinds()) {
			k := byName[s.Kind]
			seen[s.Kind]++
			if s.Hold < k.Min-1e8 || s.Hold > k.Max {
				t.Errorf("%s: not between %s and %s", s, k.Min, k.Max)
			}
			if k.Scope == minority && 2*len(s.Nodes) >= nodes {
				t.Errorf("%s: no minority of %d", s, nodes)
			}
			if n := len(slices.Compact(slices.Sorted(slices.Values(s.Nodes)))); n != len(s.Nodes) || n == 0 {
				t.Errorf("%s: nodes %v", s, s.Nodes)
			}
			for _, n := range s.Nodes {
				if n < 0 || n >= nodes {
					t.Errorf("%s: node %d", s, n)
				}
			}
		}
		if len(seen) != len(byName) {
			t.Errorf("%d nodes: only %v", nodes, seen)
		}
	}
}

func TestSelect(t *testing.T) {
	if got := Select(0); len(got) == 0 || len(got) >= len(Kinds()) {
		t.Errorf("without namespaces: %d", len(got))
	}
	if got := Select(network, "cut link", "power loss"); len(got) != 1 || got[0].Name != "cut link" {
		t.Errorf("got %v", got)
	}
}

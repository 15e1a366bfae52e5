package ring

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/gossip/node"
)

func three() []Node {
	return []Node{{ID: "m1", Weight: 100}, {ID: "m2", Weight: 100}, {ID: "m3", Weight: 200}}
}

func TestOwnerIsStable(t *testing.T) {
	// Owners must not change between releases: nodes of two versions share one cluster during an upgrade.
	want := map[string]node.ID{}
	for _, key := range []string{"web1", "web2", "db1", "20261121030405123456", "", "ünïcode"} {
		id, ok := Owner(key, three())
		if !ok {
			t.Fatalf("%q has no owner", key)
		}
		want[key] = id
	}
	got := fmt.Sprint(want)
	const golden = "map[:m3 20261121030405123456:m3 db1:m1 web1:m2 web2:m3 ünïcode:m2]"
	if got != golden {
		t.Errorf("owners are %s, were %s in the first release", got, golden)
	}
}

func TestOwner_NoCandidates(t *testing.T) {
	for name, nodes := range map[string][]Node{
		"none":      nil,
		"no weight": {{ID: "m1"}, {ID: "m2", Weight: -3}},
	} {
		if id, ok := Owner("web1", nodes); ok || id != "" {
			t.Errorf("%s: owner %q, want none", name, id)
		}
		if got := Ranked("web1", nodes); len(got) != 0 {
			t.Errorf("%s: ranked %v, want none", name, got)
		}
	}
}

func TestDraining(t *testing.T) {
	nodes := three()
	nodes[2].Draining = true
	for i := range 500 {
		key := fmt.Sprint("minion", i)
		if id, _ := Owner(key, nodes); id == "m3" {
			t.Fatalf("%s is owned by the draining node", key)
		}
		if r := Ranked(key, nodes); len(r) != 3 || r[2] != "m3" {
			t.Fatalf("%s is ranked %v, want m3 last", key, r)
		}
	}
	for i := range nodes {
		nodes[i].Draining = true
	}
	if _, ok := Owner("web1", nodes); !ok {
		t.Error("no owner while all are draining")
	}
}

func TestSharesMatchReality(t *testing.T) {
	const keys = 40_000
	nodes := three()
	count := map[node.ID]int{}
	for i := range keys {
		id, _ := Owner(fmt.Sprintf("minion-%d.example", i), nodes)
		count[id]++
	}
	for id, share := range Shares(nodes) {
		if got := float64(count[id]) / keys; math.Abs(got-share) > 0.015 {
			t.Errorf("%s owns %.3f of the keys, share %.3f", id, got, share)
		}
	}
}

func drawNodes(t *rapid.T) []Node {
	n := rapid.IntRange(1, 7).Draw(t, "nodes")
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{
			ID:       node.ID(fmt.Sprint("n", i)),
			Weight:   rapid.IntRange(0, 300).Draw(t, "weight"),
			Draining: rapid.Bool().Draw(t, "draining"),
		}
	}
	return nodes
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		key := rapid.String().Draw(t, "key")
		owner, ok := Owner(key, nodes)
		ranked := Ranked(key, nodes)
		if ok != (len(ranked) > 0) {
			t.Fatalf("owner %v, ranked %v", ok, ranked)
		}
		if !ok {
			return
		}
		if ranked[0] != owner {
			t.Fatalf("owner %s, ranked first %s", owner, ranked[0])
		}
		shuffled := slices.Clone(nodes)
		slices.Reverse(shuffled)
		if again, _ := Owner(key, shuffled); again != owner {
			t.Fatalf("owner depends on the order of nodes: %s and %s", owner, again)
		}
		// Without the owner its successor takes over; without anybody else nothing moves.
		gone := rapid.SampledFrom(ranked).Draw(t, "gone")
		left := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.ID == gone })
		want := slices.DeleteFunc(slices.Clone(ranked), func(id node.ID) bool { return id == gone })
		if got := Ranked(key, left); !slices.Equal(got, want) {
			t.Fatalf("without %s the ranking is %v, want %v", gone, got, want)
		}
		sum := 0.0
		for _, s := range Shares(nodes) {
			sum += s
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares add up to %v", sum)
		}
	})
}

func BenchmarkOwner(b *testing.B) {
	nodes := three()
	b.ReportAllocs()
	for b.Loop() {
		Owner("minion-4711.example.org", nodes)
	}
}

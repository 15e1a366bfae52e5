package ring

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/gossip/node"
)

// Node is a candidate for ownership. IDs are unique within one call.
type Node struct {
	ID       node.ID
	Weight   int // relative share; zero and below own nothing
	Draining bool
}

// Owner returns the node responsible for key, and false when no node can be.
func Owner(key string, nodes []Node) (node.ID, bool) {
	drained := allDraining(nodes)
	best, found := scored{}, false
	for _, n := range nodes {
		if !eligible(n, drained) {
			continue
		}
		if s := (scored{n.ID, score(key, n)}); !found || before(s, best) < 0 {
			best, found = s, true
		}
	}
	return best.id, found
}

// Ranked returns the nodes in the order in which they are responsible for key: the owner, who takes over when the owner
// is gone, and so on. Draining nodes come last, in the same order among themselves; nodes without weight are left out.
func Ranked(key string, nodes []Node) []node.ID {
	var rest, last []scored
	for _, n := range nodes {
		switch {
		case n.Weight <= 0:
		case n.Draining:
			last = append(last, scored{n.ID, score(key, n)})
		default:
			rest = append(rest, scored{n.ID, score(key, n)})
		}
	}
	slices.SortFunc(rest, before)
	slices.SortFunc(last, before)
	out := make([]node.ID, 0, len(rest)+len(last))
	for _, s := range append(rest, last...) {
		out = append(out, s.id)
	}
	return out
}

// Shares returns the expected part of the key space of each node, 0 to 1. Nodes that own nothing are in it with 0.
func Shares(nodes []Node) map[node.ID]float64 {
	drained := allDraining(nodes)
	sum := 0.0
	for _, n := range nodes {
		if eligible(n, drained) {
			sum += float64(n.Weight)
		}
	}
	out := make(map[node.ID]float64, len(nodes))
	for _, n := range nodes {
		out[n.ID] = 0
		if eligible(n, drained) {
			out[n.ID] = float64(n.Weight) / sum
		}
	}
	return out
}

type scored struct {
	id    node.ID
	score float64
}

// before sorts by score, the highest first; equal ones by id so that all nodes agree.
func before(a, b scored) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// score is -weight/ln(u) with u uniform in (0,1) from the hash: the largest of such scores falls to each node with a
// probability in proportion to its weight.
func score(key string, n Node) float64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(key)
	_, _ = d.Write(separator)
	_, _ = d.WriteString(string(n.ID))
	u := (float64(d.Sum64()>>11) + 0.5) / (1 << 53)
	return -float64(n.Weight) / math.Log(u)
}

// separator occurs in no minion id, jid or node id, so that two keys cannot be read as one.
var separator = []byte{0}

func eligible(n Node, drained bool) bool { return n.Weight > 0 && (drained || !n.Draining) }

// allDraining says that no node with weight is left that is not draining: then draining ones have to do.
func allDraining(nodes []Node) bool {
	for _, n := range nodes {
		if n.Weight > 0 && !n.Draining {
			return false
		}
	}
	return true
}

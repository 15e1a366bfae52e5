package router

import (
	"slices"

	"saltclusterd/gossip/node"
)

// loadStep is how many requests count as no difference: below that one minion keeps to one node, whose caches know it.
const loadStep = 4

// leastLoaded orders nodes that may all do the work: those with the least to do first, the ring's order among equals,
// draining ones last.
func (v View) leastLoaded(ranked []node.ID) []node.ID {
	load := make(map[node.ID]int, len(ranked))
	for _, id := range ranked {
		n, _ := v.findNode(id)
		busy := n.Load
		if v.Relaying != nil {
			busy = max(busy, v.Relaying(id)) // what we know at once, before it is told around
		}
		load[id] = busy / loadStep
	}
	slices.SortStableFunc(ranked, func(a, b node.ID) int {
		na, _ := v.findNode(a)
		nb, _ := v.findNode(b)
		if na.Draining != nb.Draining {
			if na.Draining {
				return 1
			}
			return -1
		}
		return load[a] - load[b]
	})
	return ranked
}

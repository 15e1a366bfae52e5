package fanout

import (
	"cmp"
	"net/netip"
	"slices"

	"saltclusterd/sidecar/edge"
)

// splitFairly takes room subscribers at most out of arrivals. Networks take turns, in each of which those come first
// that have waited longest, so that a stranger who subscribes over and over does not keep minions waiting.
func splitFairly(ready []arrival, room int, network func(edge.Newcomer) netip.Addr) (served, later []arrival) {
	type place struct{ turn, arrival, index int }
	var places []place
	turns := map[netip.Addr]int{}
	for i, a := range ready {
		for j, who := range a.who {
			n := network(who)
			places = append(places, place{turns[n], i, j})
			turns[n]++
		}
	}
	if len(places) <= room {
		return ready, nil
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
	taken := make([]map[int]bool, len(ready))
	for _, p := range places[:room] {
		if taken[p.arrival] == nil {
			taken[p.arrival] = map[int]bool{}
		}
		taken[p.arrival][p.index] = true
	}
	for i, a := range ready {
		now, rest := a, a
		now.who, rest.who = nil, nil
		for j, who := range a.who {
			if taken[i][j] {
				now.who = append(now.who, who)
			} else {
				rest.who = append(rest.who, who)
			}
		}
		if len(now.who) > 0 {
			served = append(served, now)
		}
		if len(rest.who) > 0 {
			later = append(later, rest)
		}
	}
	return served, later
}

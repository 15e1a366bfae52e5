package hlc

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"saltclusterd/gossip/node"
)

// Off is a clock that is not where it should be.
type Off struct {
	Node  node.ID
	Ahead time.Duration // of the lower median of all clocks; negative: behind it
}

// Judge names the clocks that are more than bound away from the median of all, by how far each is ahead of any one
// time. majority says that more than half of all agree, so that those named are the wrong ones. Otherwise it cannot be
// told which are wrong.
func Judge(offsets map[node.ID]time.Duration, bound time.Duration) (off []Off, majority bool) {
	median, ok := lowerMedian(offsets)
	if !ok {
		return nil, true
	}
	for _, id := range slices.Sorted(maps.Keys(offsets)) {
		if ahead := offsets[id] - median; ahead.Abs() > bound {
			off = append(off, Off{Node: id, Ahead: ahead})
		}
	}
	return off, 2*(len(offsets)-len(off)) > len(offsets)
}

// lowerMedian returns the median, of an even number of values the lower of both in the middle.
func lowerMedian(offsets map[node.ID]time.Duration) (time.Duration, bool) {
	if len(offsets) == 0 {
		return 0, false
	}
	all := slices.SortedFunc(maps.Values(offsets), cmp.Compare[time.Duration])
	return all[(len(all)-1)/2], true
}

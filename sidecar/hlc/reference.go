package hlc

import (
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// Reference is the time of a cluster, as one of its nodes knows it: the lower median of the wall clocks of its nodes.
// The lower one, because serials that are behind are followed upwards, and those ahead cannot be taken back.
//
// The clocks of peers are carried forward with a clock that cannot be set, so that this node still has them when it is
// cut off and its own clock is set.
type Reference struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu      sync.Mutex
	settled bool
	peers   map[node.ID]reading
}

// reading is the wall clock of a peer.
type reading struct {
	base int64         // its milliseconds since 1970 when elapsed was 0
	at   time.Duration // elapsed when it was read
}

// farthest is the greatest difference of two clocks that is told from others, in milliseconds: a century.
const farthest = 100 * 365 * 24 * 3600 * 1000

// NewReference returns a reference that knows no peers. wall is the clock of this host, elapsed one that cannot be set.
func NewReference(wall func() time.Time, elapsed func() time.Duration) *Reference {
	return &Reference{wall: wall, elapsed: elapsed, peers: map[node.ID]reading{}}
}

// Elapsed is the clock that cannot be set.
func (r *Reference) Elapsed() time.Duration { return r.elapsed() }

// Note says that the clock of a peer showed wall when Elapsed was at.
func (r *Reference) Note(id node.ID, wall time.Time, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers[id] = reading{base: wall.UnixMilli() - at.Milliseconds(), at: at}
}

// Keep drops the clocks of all other nodes than these.
func (r *Reference) Keep(ids []node.ID) {
	keep := make(map[node.ID]bool, len(ids))
	for _, id := range ids {
		keep[id] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.peers {
		if !keep[id] {
			delete(r.peers, id)
		}
	}
}

// Settle says that the peers have been asked: what is not known now may stay so.
func (r *Reference) Settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
}

// Time returns the time of the cluster, the zero time before Settle.
func (r *Reference) Time() time.Time {
	r.mu.Lock()
	settled := r.settled
	r.mu.Unlock()
	if !settled {
		return time.Time{}
	}
	return r.Guess()
}

// Guess returns the time of the cluster, before Settle that of the clocks read so far.
func (r *Reference) Guess() time.Time {
	now, offsets := r.readOffsets(0)
	median, _ := lowerMedian(offsets)
	return now.Add(median)
}

// Offsets returns how far the clocks that were read within the last while are ahead of this host's, its own included.
func (r *Reference) Offsets(self node.ID, within time.Duration) map[node.ID]time.Duration {
	_, offsets := r.readOffsets(within)
	offsets[self] = offsets[""]
	delete(offsets, "")
	return offsets
}

// readOffsets returns this host's time and how far each clock is ahead of it; this host's own has no name.
func (r *Reference) readOffsets(within time.Duration) (time.Time, map[node.ID]time.Duration) {
	now, elapsed := r.wall(), r.elapsed()
	out := map[node.ID]time.Duration{"": 0}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.peers {
		if within == 0 || elapsed-p.at <= within {
			ahead := p.base + elapsed.Milliseconds() - now.UnixMilli()
			out[id] = time.Duration(min(max(ahead, -farthest), farthest)) * time.Millisecond
		}
	}
	return now, out
}

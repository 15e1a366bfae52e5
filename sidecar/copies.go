package sidecar

import (
	"sync"

	"saltclusterd/gossip/node"
)

// The minion of a write that is copied to other nodes has been answered, so none of the edge's limits counts the copy
// any more: a peer that hangs would let one minion that writes and writes fill our memory.
const (
	maxCopies    = 1024     // under way to one node
	maxCopyBytes = 64 << 20 // of them together; one is let through whatever its size
)

// copyRoom bounds the copies under way to each node.
type copyRoom struct {
	mu sync.Mutex
	to map[node.ID]copyLoad
}

type copyLoad struct {
	copies int
	bytes  int64
}

// takePlace takes a place for a copy of size bytes; false: there is none. leave must follow after true.
func (r *copyRoom) takePlace(to node.ID, size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.to[to]
	if l.copies > 0 && (l.copies >= maxCopies || l.bytes+int64(size) > maxCopyBytes) {
		return false
	}
	if r.to == nil {
		r.to = map[node.ID]copyLoad{}
	}
	r.to[to] = copyLoad{l.copies + 1, l.bytes + int64(size)}
	return true
}

// countHeld is how much is under way to all nodes.
func (r *copyRoom) countHeld() (copies int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.to {
		copies, bytes = copies+l.copies, bytes+l.bytes
	}
	return copies, bytes
}

func (r *copyRoom) freePlace(to node.ID, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.to[to]
	if l.copies == 1 {
		delete(r.to, to)
		return
	}
	r.to[to] = copyLoad{l.copies - 1, l.bytes - int64(size)}
}

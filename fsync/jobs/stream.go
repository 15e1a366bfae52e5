package jobs

import "sync"

// Bounds of the stream to a peer. A record that does not fit makes its job dirty.
const (
	maxQueueBytes = 32 << 20
	batchBytes    = 1 << 20
	batchRecords  = 2_048
)

// stream is the records that wait for a peer.
type stream struct {
	mu    sync.Mutex
	queue []*record
	bytes int
}

// add is false when a record does not fit.
func (st *stream) add(r *record) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.bytes+r.weight() > maxQueueBytes {
		return false
	}
	st.queue = append(st.queue, r)
	st.bytes += r.weight()
	return true
}

// take returns the next batch.
func (st *stream) take() (batch []*record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	size := 0
	for size < batchBytes && len(batch) < len(st.queue) && len(batch) < batchRecords {
		size += st.queue[len(batch)].weight()
		batch = st.queue[:len(batch)+1]
	}
	st.queue = st.queue[len(batch):]
	st.bytes -= size
	if len(st.queue) == 0 {
		st.queue, st.bytes = nil, 0
	}
	return batch
}

// takeAll empties the stream.
func (st *stream) takeAll() (all []*record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all, st.queue, st.bytes = st.queue, nil, 0
	return all
}

func (st *stream) len() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.queue)
}

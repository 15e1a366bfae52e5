package content

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// queue is what a fetch has yet to get, and which peers do not have it.
type queue struct {
	peers []node.ID
	put   func(Hash, []byte) error

	mu      sync.Mutex
	waiting []tree.Chunk
	lacks   map[Hash]map[node.ID]bool
	open    int // not arrived yet
	arrived int // since the last look at progress
	fatal   error
	errs    map[node.ID]error // the last of each peer
}

func newQueue(wants []tree.Chunk, peers []node.ID, put func(Hash, []byte) error) *queue {
	return &queue{
		peers: peers, put: put, waiting: wants, open: len(wants), lacks: map[Hash]map[node.ID]bool{},
		errs: map[node.ID]error{},
	}
}

// takeBatch returns a batch that a peer may have.
func (q *queue) takeBatch(peer node.ID) []tree.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch, rest []tree.Chunk
	size := 0
	for i, c := range q.waiting {
		if len(batch) >= fetchMost || size >= fetchBytes {
			rest = append(rest, q.waiting[i:]...)
			break
		}
		if q.lacks[c.Hash][peer] {
			rest = append(rest, c)
			continue
		}
		batch = append(batch, c)
		size += int(c.Size)
	}
	q.waiting = rest
	return batch
}

func (q *queue) returnBatch(peer node.ID, rest []tree.Chunk, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, rest...)
	if err != nil {
		q.errs[peer] = err
	}
}

// noteMissing notes that a peer does not have something.
func (q *queue) noteMissing(peer node.ID, c tree.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lacks[c.Hash] == nil {
		q.lacks[c.Hash] = map[node.ID]bool{}
	}
	q.lacks[c.Hash][peer] = true
	q.waiting = append(q.waiting, c)
}

func (q *queue) noteArrived(tree.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open--
	q.arrived++
}

// fail ends the fetch: what arrives cannot be kept.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fatal = errors.Join(q.fatal, err)
}

func (q *queue) failed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fatal != nil
}

func (q *queue) countLeft() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}

// progressed says whether anything has arrived since it was last asked.
func (q *queue) progressed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.arrived
	q.arrived = 0
	return n > 0
}

// verdict is how the fetch ended; nil: all has arrived.
func (q *queue) verdict(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.fatal != nil:
		return q.fatal
	case q.open == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	var errs []error
	for p, err := range q.errs {
		errs = append(errs, fmt.Errorf("%s: %w", p, err))
	}
	return fmt.Errorf("%d pieces of content: %w", q.open, errors.Join(append([]error{ErrUnavailable}, errs...)...))
}

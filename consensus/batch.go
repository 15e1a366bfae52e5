package consensus

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
)

// Bounds of one log entry. Requests are never split; Propose makes them small.
const (
	batchRequests = 512
	batchBytes    = 256 << 10
	batchQueue    = 1024
	enqueueWait   = time.Second // for raft's leader loop to take an entry
	settleWithin  = 2 * time.Second
)

// outcome is what became of a request.
type outcome struct {
	results []state.Result
	index   uint64 // log position it was applied at
}

// pending is a request on its way into the log.
type pending struct {
	ctx  context.Context
	req  state.Request
	size int
	done chan answer // buffered
}

type answer struct {
	outcome
	err *attemptError
}

// batcher is the group commit: while one entry is on its way to the disks of a
// majority, the requests that come meanwhile gather for the next.
type batcher struct {
	admit func(r *raft.Raft, req state.Request, ahead []state.Request) ([]state.Result, *attemptError) // see admission.go
	queue chan *pending
	idle  chan struct{} // closed when run has returned
	ended chan struct{} // closed by the node when raft has ended
}

func newBatcher(n *Node) *batcher {
	return &batcher{admit: n.admitRequest, queue: make(chan *pending, batchQueue), idle: make(chan struct{}),
		ended: make(chan struct{})}
}

// waitIdle waits until nothing is on its way into the log, but not longer than settleWithin.
func (b *batcher) waitIdle() {
	t := time.NewTimer(settleWithin)
	defer t.Stop()
	select {
	case <-b.idle:
	case <-t.C:
	}
}

// submitRequest waits until the request is applied, or cannot be, or ctx ends.
func (b *batcher) submitRequest(ctx context.Context, req state.Request, size int) (outcome, *attemptError) {
	p := &pending{ctx: ctx, req: req, size: size, done: make(chan answer, 1)}
	select {
	case b.queue <- p:
	case <-ctx.Done():
		return outcome{}, &attemptError{err: ctx.Err()}
	}
	select {
	case a := <-p.done:
		return a.outcome, a.err
	case <-ctx.Done():
		return outcome{}, &attemptError{err: ctx.Err(), maybe: true}
	}
}

func (b *batcher) run(ctx context.Context, r *raft.Raft, m *metrics) {
	defer close(b.idle)
	var held *pending // did not fit into the batch before
	for {
		batch, rest := b.collectBatch(ctx, held)
		if batch == nil {
			break
		}
		held = rest
		began := time.Now()
		b.commitBatch(r, batch)
		if held == nil && len(b.queue) == 0 {
			// Followers learn of a commit with the next entry, or Timing.Commit later. Nothing waits for this one.
			_ = r.Barrier(enqueueWait)
		}
		m.observeBatch(len(batch), time.Since(began))
	}
	if held != nil {
		held.done <- answer{err: &attemptError{err: ErrClosed, final: true}}
	}
	for {
		select {
		case p := <-b.queue:
			p.done <- answer{err: &attemptError{err: ErrClosed, final: true}}
		default:
			return
		}
	}
}

// collectBatch waits for the first request and takes along what is already there.
func (b *batcher) collectBatch(ctx context.Context, held *pending) (batch []*pending, rest *pending) {
	if held == nil {
		select {
		case held = <-b.queue:
		case <-ctx.Done():
			return nil, nil
		}
	} else if ctx.Err() != nil {
		return nil, held
	}
	batch, size := []*pending{held}, held.size
	for len(batch) < batchRequests {
		select {
		case p := <-b.queue:
			if size += p.size; size > batchBytes {
				return batch, p
			}
			batch = append(batch, p)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// commitBatch puts a batch into the log and answers its requests.
func (b *batcher) commitBatch(r *raft.Raft, batch []*pending) {
	var e state.Entry
	live := batch[:0]
	for _, p := range batch {
		if p.ctx.Err() != nil {
			p.done <- answer{err: &attemptError{err: p.ctx.Err()}}
			continue
		}
		if refused, err := b.admit(r, p.req, e.Requests); refused != nil || err != nil {
			p.done <- answer{outcome: outcome{results: refused}, err: err}
			continue
		}
		live = append(live, p)
		e.Requests = append(e.Requests, p.req)
	}
	if len(live) == 0 {
		return
	}
	results, index, err := b.applyEntry(r, e)
	for i, p := range live {
		if err != nil {
			p.done <- answer{err: err}
			continue
		}
		p.done <- answer{outcome: outcome{results[i], index}}
	}
}

func (b *batcher) applyEntry(r *raft.Raft, e state.Entry) ([][]state.Result, uint64, *attemptError) {
	data, err := state.EncodeEntry(e)
	if err != nil {
		return nil, 0, &attemptError{err: errors.Join(ErrInvalid, err), final: true}
	}
	f := r.Apply(data, enqueueWait)
	if err := awaitFuture(f, b.ended); err != nil {
		return nil, 0, &attemptError{err: err, maybe: mayBeApplied(err)}
	}
	switch v := f.Response().(type) {
	case [][]state.Result:
		if len(v) == len(e.Requests) {
			return v, f.Index(), nil
		}
	case error:
		return nil, 0, &attemptError{err: v, final: true, maybe: errors.Is(v, state.ErrUnsupported)}
	}
	return nil, 0, &attemptError{err: errors.New("the state gave no results"), final: true, maybe: true}
}

// awaitFuture waits for raft's answer. When raft ends it gives none to an entry that
// was committed and not applied yet.
func awaitFuture(f raft.Future, ended <-chan struct{}) error {
	answered := make(chan error, 1)
	go func() { answered <- f.Error() }() // stays for an entry without an answer: raft offers only a call that blocks
	select {
	case err := <-answered:
		return err
	case <-ended:
	}
	select {
	case err := <-answered:
		return err
	default:
		return raft.ErrRaftShutdown
	}
}

// mayBeApplied tells whether raft, having returned err, may apply the entry
// after all.
func mayBeApplied(err error) bool {
	return !errors.Is(err, raft.ErrNotLeader) && !errors.Is(err, raft.ErrEnqueueTimeout) &&
		!errors.Is(err, raft.ErrLeadershipTransferInProgress)
}

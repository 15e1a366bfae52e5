package keydir

import (
	"context"
	"time"

	"saltclusterd/consensus/state"
)

const (
	// maxBatch and maxBatchBytes bound what is proposed at a time.
	maxBatch      = 500
	maxBatchBytes = 256 << 10
)

// batch is what one proposal carries, and then what became of it.
type batch struct {
	proposals []proposal
	commands  []state.Command
	results   []state.Result
	err       error
}

// proposer talks to consensus, one batch at a time, so that a proposal which waits for a quorum holds nothing else up.
type proposer struct {
	log     KeyLog
	timeout time.Duration
	in      chan batch // capacity 1: the loop sends only when the last one has come back
	out     chan batch
}

func newProposer(log KeyLog, timeout time.Duration) *proposer {
	return &proposer{log: log, timeout: timeout, in: make(chan batch, 1), out: make(chan batch, 1)}
}

func (p *proposer) runBatches(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case b := <-p.in:
			b.results, b.err = p.proposeBatch(ctx, b.commands)
			p.out <- b
		}
	}
}

func (p *proposer) proposeBatch(ctx context.Context, cmds []state.Command) ([]state.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.log.Propose(ctx, cmds)
}

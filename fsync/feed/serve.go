package feed

import (
	"context"
	"time"

	"saltclusterd/backoff"
)

// servePeer takes turns until the member or the feed goes.
func (f *Feed[K, S]) servePeer(ctx context.Context, p *peer[K, S]) {
	digests := time.NewTicker(f.cfg.Timing.Digest)
	defer digests.Stop()
	select {
	case <-ctx.Done():
		return
	case <-f.cfg.Ready:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-digests.C:
			p.line.Tell(false)
		case <-p.line.wake:
			backoff.Sleep(ctx, f.cfg.Timing.Linger)
		}
		f.runTurns(ctx, p)
	}
}

// runTurns repeats runTurn until nothing waits.
func (f *Feed[K, S]) runTurns(ctx context.Context, p *peer[K, S]) {
	p.line.setBusy(true)
	defer p.line.setBusy(false)
	retry := backoff.Backoff{Min: f.cfg.Timing.Retry, Max: f.cfg.Timing.RetryMax}
	for ctx.Err() == nil {
		did, err := f.runTurn(ctx, p)
		p.line.setErr(err)
		switch {
		case err != nil:
			p.sender.Failed(err)
			p.line.waitTurn(ctx, f.cfg.Timing.Retry, retry.Next())
		case did:
			retry.Reset()
		default:
			return
		}
	}
}

// runTurn sends the next that waits. Names that did not arrive stay pending.
func (f *Feed[K, S]) runTurn(ctx context.Context, p *peer[K, S]) (did bool, err error) {
	if did, err = p.sender.First(ctx); did || err != nil {
		return did, err
	}
	if due, ask := p.line.takeDigest(); due {
		if err := p.sender.Digest(ctx, ask); err != nil {
			p.line.Tell(ask)
			return true, err
		}
		return true, nil
	}
	names, again := p.line.takeNames(f.cfg.Batch)
	if len(names) == 0 {
		return again, nil
	}
	rest, err := p.sender.Send(ctx, names)
	if err != nil {
		p.line.Add(names...)
		return true, err
	}
	p.line.Add(rest...)
	return true, nil
}

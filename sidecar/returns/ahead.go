package returns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

const (
	// aheadAfter is how long a return is kept for its publisher before it is filed ahead of it: one that only restarts is
	// back by then.
	aheadAfter = 2 * time.Second
	// aheadAgain is how long a node is left alone that has not filed what it was asked to, and what no node could file.
	aheadAgain = 5 * time.Second
	// maxLater and maxLaterBytes bound what waits for that, in each journal.
	maxLater      = 1024
	maxLaterBytes = 16 << 20
)

// aheadKind marks a record of a batch that is to be filed ahead, and stays kept where it comes from. A node that does
// not know of it also keeps it for its publisher, which then gets it twice and takes it once.
const aheadKind = 0x40

var errNoCopier = errors.New("returns: no node that has copies of the job can be reached")

// ahead files what is kept in a journal for a node that is away in the job cache of this one, marked as such
// (jobcache.AheadFile), or has one of the job's replicas file it, so that the job is whole wherever it is looked up: a
// part of it must not lie where the rest is not. Returns that were handed over meanwhile are left out; those that only
// Python can file wait for their publisher. So do those that no node could file by the time this one ends; until then
// they are retried, and hold up nothing that comes after them.
type ahead struct {
	s *Service
	j *journal

	mu         sync.Mutex // guards what follows
	later      []spool.Record
	bytes      int
	retryAfter map[node.ID]time.Time // nodes that have failed: when they may be asked again
	tries      bool                  // retry runs
	wg         sync.WaitGroup
}

func (a *ahead) consumeBatch(ctx context.Context, batch []spool.Record) (int, error) {
	wait := min(time.Until(batch[0].Received.Add(a.s.aheadAfter)), a.s.aheadAfter) // clocks are set back
	if err := waitUntil(ctx, time.Now().Add(wait)); err != nil {
		return 0, err
	}
	for i := 0; i < len(batch); {
		if batch[i].Seq <= a.j.done(forwardName) {
			i++
			continue
		}
		job := sameJob(batch[i:])
		n, err := a.fileBatch(ctx, job)
		if ctx.Err() != nil {
			return i, context.Cause(ctx)
		}
		if err != nil {
			if n = a.postponeBatch(ctx, job); n == 0 {
				return i, err
			}
		}
		i += n
	}
	return len(batch), nil
}

// sameJob is the beginning of a batch that is of one job.
func sameJob(batch []spool.Record) []spool.Record {
	n := slices.IndexFunc(batch, func(rec spool.Record) bool { return rec.JID != batch[0].JID })
	if n < 0 {
		n = len(batch)
	}
	return batch[:n]
}

// fileBatch has the first node that can file the beginning of a batch, all of one job, and says how much of it that
// was.
func (a *ahead) fileBatch(ctx context.Context, batch []spool.Record) (n int, err error) {
	err = errNoCopier
	for _, to := range a.s.c.Peers.Copiers(batch[0].JID) {
		if string(to) == batch[0].To || a.isBackingOff(to) { // its publisher may not be known to be away yet
			continue
		}
		if to == a.s.c.Self {
			n, err = 1, a.s.fileAhead(ctx, &batch[0])
		} else {
			n, err = a.s.sendAhead(ctx, to, batch)
		}
		if ctx.Err() != nil {
			return 0, err
		}
		if a.noteResult(to, err); err == nil {
			return n, nil
		}
	}
	return 0, err
}

func (a *ahead) isBackingOff(id node.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.retryAfter[id])
}

// noteResult notes what came of asking a node.
func (a *ahead) noteResult(id node.ID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.retryAfter, id)
		return
	}
	if _, before := a.retryAfter[id]; !before {
		a.s.c.Logger.Warn("returns not filed ahead of their publisher", "node", id, "err", err)
	}
	a.retryAfter[id] = time.Now().Add(a.s.aheadAgain)
}

// postponeBatch remembers as much of a batch as there is room for, and has it tried again until ctx ends.
func (a *ahead) postponeBatch(ctx context.Context, batch []spool.Record) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rec := range batch {
		if len(a.later) >= maxLater || a.bytes > maxLaterBytes {
			break
		}
		rec.Attachment = nil
		a.later, a.bytes, n = append(a.later, rec), a.bytes+len(rec.Load), n+1
	}
	if n > 0 && !a.tries {
		a.tries = true
		a.wg.Go(func() { a.retryLater(ctx) })
	}
	return n
}

// retryLater tries what was postponed again until nothing is left of it.
func (a *ahead) retryLater(ctx context.Context) {
	for waitUntil(ctx, time.Now().Add(a.s.aheadAgain)) == nil && !a.retryAll(ctx) {
	}
}

// retryAll tries each once. It is true when nothing is left.
func (a *ahead) retryAll(ctx context.Context) bool {
	a.mu.Lock()
	batch := slices.Clone(a.later)
	a.mu.Unlock()
	filed := map[uint64]bool{}
	for i := 0; i < len(batch) && ctx.Err() == nil; {
		job := sameJob(batch[i:min(i+batchRecords, len(batch))])
		n, err := 1, error(nil)
		if batch[i].Seq > a.j.done(forwardName) {
			n, err = a.fileBatch(ctx, job)
		}
		if err != nil {
			i += len(job)
			continue
		}
		for _, rec := range batch[i : i+n] {
			filed[rec.Seq] = true
		}
		i += n
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes = 0
	a.later = slices.DeleteFunc(a.later, func(rec spool.Record) bool { return filed[rec.Seq] })
	for _, rec := range a.later {
		a.bytes += len(rec.Load)
	}
	a.tries = len(a.later) > 0
	return !a.tries
}

// sendAhead has another node file as much of the batch as one message takes.
func (s *Service) sendAhead(ctx context.Context, to node.ID, batch []spool.Record) (int, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Kind = aheadKind
	}
	body, n, err := appendBatch(nil, batch)
	if err == nil {
		err = s.c.Peers.Send(ctx, to, body)
	}
	if err != nil {
		return 0, fmt.Errorf("have %s file returns ahead: %w", to, err)
	}
	return n, nil
}

// fileAhead fails when the job cache as a whole cannot be written now. A single job that cannot be is complete when its
// publisher is back.
func (s *Service) fileAhead(ctx context.Context, rec *spool.Record) error {
	mode := s.mode.Load()
	peek, err := saltwire.PeekLoad(rec.Load)
	if ok, _ := mode.isNative(peek.Cmd); err != nil || !ok {
		return nil
	}
	plan, err := s.planAgain(rec)
	if err != nil || plan.Unasked() || s.c.Contested != nil && s.c.Contested(rec.JID) {
		return nil
	}
	plan.Syndics, plan.Jobs = nil, slices.Clone(plan.Jobs)
	for i := range plan.Jobs {
		plan.Jobs[i].Ahead = true
	}
	err = mode.Cache.Apply(ctx, plan)
	switch {
	case err == nil:
		s.metrics.count("ahead")
	case ctx.Err() != nil || concernsAll(err) || mode.Cache.Writable() != nil:
		return err
	default:
		s.c.Logger.Warn("return not filed ahead of its publisher", "minion", rec.Minion, "jid", rec.JID, "err", err)
	}
	return nil
}

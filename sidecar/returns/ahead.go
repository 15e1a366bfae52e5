package returns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// aheadAfter is how long a return is kept for its publisher before it is filed ahead of it: one that only restarts is back by then.
const aheadAfter = 2 * time.Second

// aheadKind marks a record of a batch that is to be filed ahead, and stays kept where it comes from. A node that does not know of it keeps
// it for its publisher, too, which then gets it twice and takes it once.
const aheadKind = 0x40

var errNoCopier = errors.New("returns: no node that has copies of the job can be reached")

// ahead files what is kept for a node that is away in the job cache of this one, marked as such (jobcache.AheadFile), or has one of the
// job's replicas file it, so that the job is whole wherever somebody looks it up: a part of it must not lie where the rest is not. What was
// handed over meanwhile is left out; what only Python can file waits for its publisher.
func (s *Service) ahead(ctx context.Context, j *journal, batch []spool.Record) (int, error) {
	wait := min(time.Until(batch[0].Received.Add(s.aheadAfter)), s.aheadAfter) // clocks are set back
	if err := waitUntil(ctx, time.Now().Add(wait)); err != nil {
		return 0, err
	}
	for i := 0; i < len(batch); {
		n := 1
		var err error
		switch to, ok := s.c.Peers.Copier(batch[i].JID); {
		case batch[i].Seq <= j.done(forwardName):
		case !ok:
			err = errNoCopier
		case to == s.c.Self:
			err = s.fileAhead(ctx, &batch[i])
		default:
			n, err = s.sendAhead(ctx, to, sameJob(batch[i:]))
		}
		if err != nil {
			return i, err
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

// fileAhead fails when the job cache as a whole cannot be written now. A single job that cannot be is complete when its publisher is back.
func (s *Service) fileAhead(ctx context.Context, rec *spool.Record) error {
	mode := s.mode.Load()
	peek, err := saltwire.PeekLoad(rec.Load)
	if ok, _ := mode.native(peek.Cmd); err != nil || !ok {
		return nil
	}
	plan, err := s.again(rec)
	if err != nil || plan.Unasked() {
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
	case ctx.Err() != nil || everybodys(err) || mode.Cache.Writable() != nil:
		return err
	default:
		s.c.Logger.Warn("return not filed ahead of its publisher", "minion", rec.Minion, "jid", rec.JID, "err", err)
	}
	return nil
}

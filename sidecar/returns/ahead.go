package returns

import (
	"context"
	"slices"
	"time"

	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// aheadAfter is how long a return is kept for its publisher before it is filed ahead of it: one that only restarts is back by then.
const aheadAfter = 2 * time.Second

// ahead files what is kept for a node that is away in the job cache of this one, marked as such (jobcache.AheadFile), so that the job is
// whole wherever somebody looks it up. What was handed over meanwhile is left out; what only Python can file waits for its publisher.
func (s *Service) ahead(ctx context.Context, j *journal, batch []spool.Record) (int, error) {
	wait := min(time.Until(batch[0].Received.Add(s.aheadAfter)), s.aheadAfter) // clocks are set back
	if err := waitUntil(ctx, time.Now().Add(wait)); err != nil {
		return 0, err
	}
	for i := range batch {
		if batch[i].Seq <= j.done(forwardName) {
			continue
		}
		if err := s.fileAhead(ctx, &batch[i]); err != nil {
			return i, err
		}
	}
	return len(batch), nil
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

package returns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/spool"
)

// fireWithin is how long the bus may take for one batch before it is looked whether events that wait are in the way of
// returns.
const fireWithin = 10 * time.Second

// flushGrace is how long events under way may still reach the master when the service closes, so that they are not
// fired again by the next process.
const flushGrace = time.Second

// eventsName is the consumer that fires what returns make.
const eventsName = "events"

func (s *Service) newOwn() (*journal, error) {
	files := spool.Consumer{Name: "files", Consume: s.fileReturns, Sync: s.written.newSync(), Gather: gatherTime}
	events := spool.Consumer{Name: eventsName, Consume: s.fireEvents, Gather: gatherTime}
	return s.newJournal(ownName, s.c.MaxBytes, files, events)
}

// gatherUnasked is how long a return that no job asked for waits in the journal for others. No caller waits for it, and
// several events at once cost the master less: it wakes once for all of them, and so does each reader of its bus.
const gatherUnasked = 10 * time.Millisecond

// gatherTime is spool.Consumer's Gather: a batch with a return that a job asked for is not delayed.
func gatherTime(batch []spool.Record) time.Duration {
	for i := range batch {
		if p, ok := batch[i].Attachment.(*jobcache.Plan); !ok || !p.Unasked() {
			return 0
		}
	}
	return gatherUnasked
}

// fileReturns writes the job cache. A job whose directory cannot be written while others' can is put aside (stuck.go).
func (s *Service) fileReturns(ctx context.Context, batch []spool.Record) (done int, err error) {
	for i := range batch {
		err := s.fileReturn(ctx, &batch[i])
		if err != nil {
			err = s.stuck.putStuckAside(ctx, batch[i], err)
		}
		if err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// fileReturn writes one return. What turns out to need Python after all (the master's options, or the minion's key, are
// others than when it was taken) goes to the journal for it.
func (s *Service) fileReturn(ctx context.Context, rec *spool.Record) error {
	plan, err := s.planAgain(rec)
	if err == nil {
		if err = s.applyPlan(ctx, plan); !errors.Is(err, ErrPython) {
			return err
		}
	}
	switch {
	case err != nil && !needsPython(err): // another version took it, perhaps: the master decides what it is
		s.metrics.countFailed(ErrMalformed)
		s.c.Logger.Error("return in the journal is left to the salt-master", "minion", rec.Minion, "jid", rec.JID, "err", err)
	}
	return s.toPython(ctx, *rec)
}

func needsPython(err error) bool {
	var n *jobcache.NeedsPython
	return errors.Is(err, ErrPython) || errors.As(err, &n)
}

func (s *Service) toPython(ctx context.Context, rec spool.Record) error {
	rec.Attachment = nil
	// Once, though it is tried again when the disk does not answer in time. This node knows the load itself as taken.
	key := s.window.Key(pythonName+"/"+rec.Minion, rec.Load)
	err := awaitDone(ctx, func(done func(error)) { s.appendRecord(s.python, key, rec, "deferred", done) })
	if err != nil {
		return fmt.Errorf("hand to the salt-master: %w", err)
	}
	return nil
}

// Bounds of the plans whose events are fired together, so that they are within fireWithin when the bus takes them.
const (
	firingBytes  = 32 << 20
	firingEvents = 4000
)

// fireEvents fires what the returns make on the master's bus.
func (s *Service) fireEvents(ctx context.Context, batch []spool.Record) (done int, err error) {
	plans := make([]jobcache.Plan, 0, len(batch))
	var from time.Time
	for i, size, events := 0, 0, 0; i < len(batch) && size <= firingBytes && events <= firingEvents; i++ {
		p, err := s.planAgain(&batch[i])
		if err != nil {
			p = jobcache.Plan{} // Python fires its events, if they are fired at all
		}
		plans, size, events = append(plans, p), size+p.Size, events+len(p.Events)
		if at, ok := s.publishedAt(batch[i].JID); ok && at.After(from) {
			from = at
		}
	}
	if err := waitUntil(ctx, from.Add(s.c.HoldBack)); err != nil {
		return 0, err
	}
	firing, end := context.WithTimeout(context.WithoutCancel(ctx), s.fireWithin)
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushGrace, end) })()
	done, err = s.firer.Fire(firing, plans)
	stands := errors.Is(err, context.DeadlineExceeded) // the bus is there, and takes nothing
	if stands {
		err = fmt.Errorf("the master's bus has accepted no event for %s: %w", s.fireWithin, err)
	}
	if (stands || errors.Is(err, jobcache.ErrBusDown)) && s.isCrowded() {
		s.metrics.countSkipped(len(plans))
		s.c.Logger.Warn("events given up: the master's bus is down and the journal fills up", "count", len(plans))
		s.firer.Forget()
		return len(plans), nil
	}
	return done, err
}

// isCrowded says that events which wait must not take the room of returns.
func (s *Service) isCrowded() bool {
	st := s.own.spool.Stats()
	return st.Bytes > st.MaxBytes/4*3
}

func (s *Service) publishedAt(jid string) (time.Time, bool) {
	if s.c.HoldBack <= 0 || s.c.Published == nil {
		return time.Time{}, false
	}
	return s.c.Published(jid)
}

func waitUntil(ctx context.Context, at time.Time) error {
	if d := time.Until(at); d > 0 && !backoff.Sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}

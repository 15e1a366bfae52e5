package returns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/spool"
)

// flushGrace is how long events under way may still reach the master when the service closes, so that they are not fired
// again by the next process.
const flushGrace = time.Second

func (s *Service) newOwn() (*journal, error) {
	files := spool.Consumer{Name: "files", Consume: s.files, Sync: s.syncFiles}
	return s.newJournal(ownName, s.c.MaxBytes, files, spool.Consumer{Name: "events", Consume: s.events})
}

func (s *Service) syncFiles(ctx context.Context) error {
	if cache := s.cache(); cache != nil {
		return cache.Sync(ctx)
	}
	return nil // everything went to the journal for Python, which is on disk
}

// files writes the job cache. What turns out to need Python after all (the master's options, or the minion's key, are
// others than when it was taken) goes to the journal for it.
func (s *Service) files(ctx context.Context, batch []spool.Record) (done int, err error) {
	for i := range batch {
		plan, err := s.again(&batch[i])
		cache := s.cache()
		if err == nil && cache == nil {
			err = ErrPython
		}
		switch {
		case err == nil:
			err = cache.Apply(ctx, plan)
		case needsPython(err):
			err = s.toPython(ctx, batch[i])
		default:
			s.metrics.failed(ErrMalformed)
			s.c.Logger.Error("return in the journal is not usable", "minion", batch[i].Minion, "jid", batch[i].JID, "err", err)
			err = nil
		}
		if err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

func needsPython(err error) bool {
	var n *jobcache.NeedsPython
	return errors.Is(err, ErrPython) || errors.As(err, &n)
}

func (s *Service) toPython(ctx context.Context, rec spool.Record) error {
	rec.Attachment = nil
	if err := s.python.spool.Append(ctx, rec); err != nil {
		return fmt.Errorf("hand to the salt-master: %w", err)
	}
	s.metrics.count("deferred")
	return nil
}

// events fires what the returns make on the master's bus.
func (s *Service) events(ctx context.Context, batch []spool.Record) (done int, err error) {
	plans := make([]jobcache.Plan, len(batch))
	var from time.Time
	for i := range batch {
		if p, err := s.again(&batch[i]); err == nil { // else Python fires, or nobody
			plans[i] = p
		}
		if at, ok := s.published(batch[i].JID); ok && at.After(from) {
			from = at
		}
	}
	if err := waitUntil(ctx, from.Add(s.c.HoldBack)); err != nil {
		return 0, err
	}
	firing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushGrace, end) })()
	done, err = s.firer.Fire(firing, plans)
	if busDown(err) && s.crowded() {
		s.metrics.skipped(len(batch))
		s.c.Logger.Warn("events given up: the master's bus is down and the journal fills up", "count", len(batch))
		s.firer.Forget()
		return len(batch), nil
	}
	return done, err
}

func busDown(err error) bool {
	return errors.Is(err, jobcache.ErrBusDown) || errors.Is(err, localmaster.ErrBusDown)
}

// crowded says that events which wait must not take the room of returns.
func (s *Service) crowded() bool {
	st := s.own.spool.Stats()
	return st.Bytes > st.MaxBytes/4*3
}

func (s *Service) published(jid string) (time.Time, bool) {
	if s.c.HoldBack <= 0 || s.c.Published == nil {
		return time.Time{}, false
	}
	return s.c.Published(jid)
}

func waitUntil(ctx context.Context, at time.Time) error {
	d := time.Until(at)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

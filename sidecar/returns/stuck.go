package returns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"saltclusterd/durable"
	"saltclusterd/sidecar/spool"
)

// stuckAfter is how long a job's directory may refuse to be written before its returns stop holding up all others.
const stuckAfter = 5 * time.Second

// stuck is where returns go whose job cannot be written while the job cache as a whole can: a directory that the file
// system cannot read any more, or that was made immutable. They wait in a journal of their own until it can.
type stuck struct {
	s       *Service
	journal *journal

	// of the goroutine that consumes this node's own returns
	seq   uint64
	since time.Time
}

func (s *Service) newStuck() (*journal, error) {
	files := func(ctx context.Context, batch []spool.Record) (int, error) {
		for i := range batch {
			if err := s.fileReturn(ctx, &batch[i]); err != nil {
				return i, err
			}
		}
		return len(batch), nil
	}
	return s.newJournal(stuckName, s.c.MaxBytes/4, spool.Consumer{Name: "files", Consume: files, Sync: s.written.newSync()})
}

// putStuckAside takes a return that could not be written for some time, if others can. Otherwise it is to be tried
// again.
func (k *stuck) putStuckAside(ctx context.Context, rec spool.Record, err error) error {
	if k.seq != rec.Seq {
		k.seq, k.since = rec.Seq, time.Now()
	}
	cache := k.s.cache()
	if ctx.Err() != nil || time.Since(k.since) < k.s.stuckAfter || cache == nil || concernsAll(err) ||
		cache.Writable() != nil {
		return err
	}
	if kept := k.journal.spool.Append(ctx, rec); kept != nil {
		return fmt.Errorf("%w (and not put aside: %w)", err, kept)
	}
	k.s.metrics.count("stuck")
	k.s.c.Logger.Error("return cannot be written to the job cache: put aside, and tried again periodically", "minion",
		rec.Minion,
		"jid", rec.JID, "err", err)
	return nil
}

// concernsAll says whether an error is certainly not that of one directory.
func concernsAll(err error) bool {
	return durable.IsWholeDiskError(err) || slices.ContainsFunc([]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, spool.ErrFull, spool.ErrBusy, spool.ErrHangs,
		spool.ErrClosed,
	}, func(is error) bool { return errors.Is(err, is) })
}

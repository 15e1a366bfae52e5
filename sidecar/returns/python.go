package returns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/spool"
)

const (
	// replays is how many returns the master is given at a time: it has several workers.
	replays = 8
	// maxRefusals is how often the master may refuse one, and maxFailures how often it may fail at one, before it is put
	// aside.
	maxRefusals = 8
	maxFailures = 5
	// shortTimeout is how long the master may take for one after it has not answered another: there may be many like that.
	shortTimeout = 5 * time.Second
)

var errMasterDown = errors.New("returns: the salt-master does not answer")

func (s *Service) newPython() (*journal, error) {
	r := &replay{s: s, done: map[uint64]bool{}, failed: map[uint64]*failure{}}
	return s.newJournal(pythonName, s.c.MaxBytes/4,
		spool.Consumer{Name: "master", Consume: r.consumeBatch, Sync: s.stored.newSync(), Once: true})
}

// replay gives the master what was kept for it. It belongs to one goroutine.
type replay struct {
	s    *Service
	done map[uint64]bool // records beyond the first that is not done, not to be given twice
	next uint64          // the first that is not done
	// careful: the last one that the master had it has not answered, which may cost it a worker for good. It gets one at a
	// time.
	careful atomic.Bool

	mu     sync.Mutex
	failed map[uint64]*failure // by record
}

// failure is what has come of a record so far.
type failure struct {
	times int
	asked int   // of them, those that were no refusals
	over  error // the master does not get it again; it could not be put aside yet
}

func (r *replay) consumeBatch(ctx context.Context, batch []spool.Record) (int, error) {
	if batch[0].Seq < r.next { // the disk may have lost what the master has stored since then
		clear(r.done)
	}
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	places := make(chan struct{}, replays)
	for i := range batch {
		if r.done[batch[i].Seq] {
			continue
		}
		places <- struct{}{}
		if r.careful.Load() {
			wg.Wait() // one at a time
		}
		if !r.s.c.Python.Up() { // perhaps since it had one of these
			errs[i] = errMasterDown
			<-places
			continue
		}
		wg.Go(func() {
			errs[i] = r.replayReturn(ctx, &batch[i])
			<-places
		})
	}
	wg.Wait()
	first, err := len(batch), error(nil)
	for i := range batch {
		switch {
		case errs[i] != nil && err == nil:
			first, err = i, errs[i]
		case errs[i] == nil && err != nil:
			r.done[batch[i].Seq] = true
		}
		if err == nil {
			delete(r.done, batch[i].Seq)
			r.next = batch[i].Seq + 1
		}
	}
	return first, err
}

// replayReturn gives the master one return. One that no master takes any more is left out, one that this one does not
// answer is put aside.
func (r *replay) replayReturn(ctx context.Context, rec *spool.Record) error {
	err := r.lastError(rec.Seq)
	if err == nil {
		r.s.Mend(rec.JID, rec.Minion)
		err = r.giveReturn(ctx, rec)
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrGone):
		r.s.metrics.count("gone")
		r.s.c.Logger.Warn("kept return left out", "minion", rec.Minion, "jid", rec.JID, "err", err)
	case ctx.Err() != nil || !r.noteFailure(rec.Seq, err):
		return err
	default:
		if kept := r.s.unanswered.putReturn(*rec, err, r.countAsked(rec.Seq)); kept != nil {
			return fmt.Errorf("%w (and not put aside: %w)", err, kept)
		}
		r.s.metrics.count("unanswered")
		r.s.c.Logger.Error("return that the salt-master does not answer: put aside, to be delivered again a few times",
			"minion", rec.Minion,
			"jid", rec.JID, "err", err)
	}
	r.mu.Lock()
	delete(r.failed, rec.Seq)
	r.mu.Unlock()
	return nil
}

func (r *replay) giveReturn(ctx context.Context, rec *spool.Record) error {
	if r.careful.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, shortTimeout)
		defer cancel()
	}
	err := r.s.askPython(ctx, rec)
	switch {
	case err == nil || errors.Is(err, ErrGone) || errors.Is(err, ErrRefused):
		r.careful.Store(false)
	case !errors.Is(err, ErrNotAsked):
		r.careful.Store(true)
	}
	return err
}

// askPython gives the master a return that was acknowledged before, unless the master could not store it now.
func (s *Service) askPython(ctx context.Context, rec *spool.Record) error {
	if err := s.MasterTakes(len(rec.Load)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	return s.c.Python.Return(ctx, rec.Minion, rec.Load)
}

// noteFailure says whether the master has had its chances with a record: it has refused it, or failed at it, often
// enough, or it has let the time pass that a request may take, while it answers others.
func (r *replay) noteFailure(seq uint64, err error) bool {
	if concernsAll(err) || errors.Is(err, ErrNotAsked) {
		return false
	}
	late := errors.Is(err, context.DeadlineExceeded) && r.s.c.Python.Up()
	limit := maxFailures
	if errors.Is(err, ErrRefused) {
		limit = maxRefusals
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failed[seq]
	if f == nil {
		f = &failure{}
		r.failed[seq] = f
	}
	if f.over != nil {
		return true
	}
	f.times++
	if !errors.Is(err, ErrRefused) {
		f.asked++
	}
	if late || f.times >= limit {
		f.over = err
	}
	return f.over != nil
}

// countAsked is how often the master had a record without an answer.
func (r *replay) countAsked(seq uint64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.failed[seq]; f != nil {
		return f.asked
	}
	return 0
}

// lastError is why the master does not get a record again.
func (r *replay) lastError(seq uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.failed[seq]; f != nil {
		return f.over
	}
	return nil
}

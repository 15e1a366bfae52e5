package returns

import (
	"context"
	"errors"
	"sync"

	"saltclusterd/sidecar/spool"
)

const (
	// replays is how many returns the master is given at a time: it has several workers.
	replays = 8
	// maxRefusals is how often the master may refuse one before it is left out.
	maxRefusals = 8
)

var errMasterDown = errors.New("returns: the salt-master does not answer")

func (s *Service) newPython() (*journal, error) {
	r := &replay{s: s, done: map[uint64]bool{}, refused: map[uint64]int{}}
	return s.newJournal(pythonName, s.c.MaxBytes/4, spool.Consumer{Name: "master", Consume: r.consume})
}

// replay gives the master what was kept for it. It belongs to one goroutine.
type replay struct {
	s    *Service
	done map[uint64]bool // records beyond the first that is not done, not to be given twice

	mu      sync.Mutex
	refused map[uint64]int // how often, by record
}

func (r *replay) consume(ctx context.Context, batch []spool.Record) (int, error) {
	if !r.s.c.Python.Up() {
		return 0, errMasterDown
	}
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	places := make(chan struct{}, replays)
	for i := range batch {
		if r.done[batch[i].Seq] {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = r.one(ctx, &batch[i])
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
		}
	}
	return first, err
}

// one gives the master one return. One that no master takes any more is left out.
func (r *replay) one(ctx context.Context, rec *spool.Record) error {
	r.s.Mend(rec.JID, rec.Minion)
	err := r.s.c.Python.Return(ctx, rec.Minion, rec.Load)
	if errors.Is(err, ErrRefused) && r.again(rec.Seq) {
		return err
	}
	r.mu.Lock()
	delete(r.refused, rec.Seq)
	r.mu.Unlock()
	if errors.Is(err, ErrGone) || errors.Is(err, ErrRefused) {
		r.s.metrics.count("gone")
		r.s.c.Logger.Warn("kept return left out", "minion", rec.Minion, "jid", rec.JID, "err", err)
		return nil
	}
	return err
}

// again says whether a record that the master has refused is to be given to it once more.
func (r *replay) again(seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[seq]++
	return r.refused[seq] < maxRefusals
}

package roots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/content"
)

// logKey is what of the log makes a round worthwhile.
type logKey struct {
	head          uint64
	held, dropped int
	ready         bool
}

func (s *Store) logKey() logKey {
	k := logKey{ready: s.cfg.Log.Ready()}
	if head, ok := s.cfg.Log.Head(); ok {
		k.head = head.Number
	}
	for _, r := range s.cfg.Log.Revisions() {
		switch r.State {
		case StateHeld:
			k.held++
		case StateDropped:
			k.dropped++
		}
	}
	return k
}

// loop does all that changes anything, one thing after the other.
func (s *Store) loop(ctx context.Context, changed, news <-chan struct{}) {
	defer s.phase(PhaseIdle)
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	for {
		var req *request
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if left := time.Until(due); left > 0 && !s.remounted() {
				timer.Reset(min(left, s.cfg.Timing.Poll))
				continue
			}
			s.dirty = true
		case <-news:
			s.dirty = true
		case _, ok := <-changed:
			if !ok {
				return
			}
			if s.logKey() == s.actedOn {
				continue
			}
		case r := <-s.requests:
			req = &r
		}
		left := s.turn(ctx, req)
		due = time.Now().Add(left)
		timer.Reset(min(left, s.cfg.Timing.Poll))
	}
}

// turn does a round, or what a request asks for, and returns when the next is due.
func (s *Store) turn(ctx context.Context, req *request) time.Duration {
	key := s.logKey()
	var err error
	if req != nil {
		err = s.answer(ctx, req)
	} else {
		err = s.round(ctx)
	}
	err = errors.Join(err, s.saveBase())
	s.actedOn = key
	s.phase(PhaseIdle)
	s.setProblem(ctx, err)
	s.tidy()
	if err != nil {
		return s.retry.Next()
	}
	s.retry.Reset()
	return s.nextScan()
}

// tidy does from time to time what nothing waits for.
func (s *Store) tidy() {
	if time.Since(s.lastSave) > time.Minute {
		s.saveIndexes()
	}
	if s.pending == nil && s.base.Number >= s.collected+collectAfter {
		s.collected = s.base.Number
		if err := s.collect(); err != nil {
			s.log.Warn("old directories not forgotten", "err", err)
		}
	}
}

// nextScan tells when live is looked at again without a hint.
func (s *Store) nextScan() time.Duration {
	t := s.cfg.Timing
	if !s.cfg.Log.Ready() { // which is not told as a change
		return t.Retry
	}
	if s.unsettled() {
		return t.Retry
	}
	if !s.watching || len(s.ordered) > 0 || slices.ContainsFunc(s.slots, (*slotState).restless) {
		return t.Poll
	}
	return t.Scan
}

func (s *Store) setProblem(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil && !errors.Is(err, errHeadMoved) {
		text = err.Error()
		if errors.Is(err, fs.ErrPermission) {
			text += fmt.Sprintf("; saltclusterd (uid %d) may not write there: saltclusterctl doctor", os.Geteuid())
		}
		s.metrics.failures.WithLabelValues("round").Inc()
	}
	s.mu.Lock()
	fresh := text != "" && text != s.problem
	s.problem = text
	s.mu.Unlock()
	if fresh {
		s.log.Warn("roots are behind the cluster; trying again", "err", err)
	}
}

func (s *Store) phase(p Phase) {
	s.mu.Lock()
	if s.progress.Phase != p {
		s.progress = Progress{Phase: p}
	}
	s.mu.Unlock()
}

// maxPasses bounds how often a round begins anew because the head has moved on.
const maxPasses = 20

// maxOutrun is how often a newer revision is preferred to the one that is being brought here. Who edits all the
// while would keep a node for ever from what takes longer to fetch than he takes to edit.
const maxOutrun = 3

// insists says that what has been begun is put on the disk though the head has moved on.
func (s *Store) insists() bool { return s.outrun >= maxOutrun }

// overtaken says whether a round is to begin anew because of an error.
func (s *Store) overtaken(err error) bool {
	switch {
	case errors.Is(err, errHeadMoved):
		s.outrun++
	case s.insists() && errors.Is(err, content.ErrUnavailable): // of a revision that is not the head any more, perhaps
		s.outrun = 0
	default:
		return false
	}
	return true
}

// round makes live and the cluster the same, as far as the mode lets it.
func (s *Store) round(ctx context.Context) error {
	for range maxPasses {
		if err := s.catchUp(ctx); err != nil {
			if s.overtaken(err) {
				continue
			}
			return err
		}
		s.outrun = 0
		if s.cfg.Mode != ModeAuto || s.unsettled() || !s.cfg.Log.Ready() {
			return nil
		}
		_, err := s.proposeEdits(ctx, SyncOptions{})
		if !errors.Is(err, ErrNotCurrent) && !errors.Is(err, errHeadMoved) {
			return err
		}
		s.dirty = true
		if !s.awaitHead(ctx) {
			return err
		}
	}
	return errHeadMoved
}

// awaitHead waits for the revision that came before ours, which others may have heard of earlier.
func (s *Store) awaitHead(ctx context.Context) bool {
	deadline := time.Now().Add(s.cfg.Timing.Retry)
	for time.Now().Before(deadline) {
		if head, ok := s.cfg.Log.Head(); ok && head.Number != s.base.Number {
			return true
		}
		if !backoff.Sleep(ctx, 5*time.Millisecond) {
			return false
		}
	}
	return false
}

// unsettled says whether edits wait for files that are being written: a revision has all of a checkout or nothing of
// it. A file that never comes to rest, a log say, does not hold up the others: after Timing.Settle it is left as the
// cluster has it.
func (s *Store) unsettled() bool {
	for _, st := range s.slots {
		if st.restless() && time.Since(st.restlessAt) < s.cfg.Timing.Settle {
			return true
		}
	}
	return false
}

// restless says whether the last scan of a slot found files that were changing.
func (st *slotState) restless() bool {
	return st.unavailable == "" && !st.restlessAt.IsZero()
}

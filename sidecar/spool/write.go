package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"saltclusterd/signal"
)

// waiter is a record on its way to the disk.
type waiter struct {
	rec  Record
	body []byte
	done func(error)
	late func() // see Go; may be nil
}

// diskBytes is what the record takes on disk.
func (w *waiter) diskBytes() int64 { return int64(len(w.body)) + frameSize }

// waitQueue is the records that wait for the writer.
type waitQueue struct {
	waiters []*waiter
	bytes   int64   // on disk, of those that wait and of the group that is being written
	writing *waiter // the first one of that group; nil: none is being written
}

func (q *waitQueue) addWaiter(w *waiter) {
	q.waiters = append(q.waiters, w)
	q.bytes += w.diskBytes()
}

// takeGroup takes the first ones, of at most so many bytes but one at least.
func (q *waitQueue) takeGroup(limit int64) (group []*waiter) {
	var size int64
	n := 0
	for n < len(q.waiters) && (n == 0 || size+int64(len(q.waiters[n].body)) <= limit) {
		size += q.waiters[n].diskBytes()
		n++
	}
	group, q.waiters = q.waiters[:n:n], q.waiters[n:]
	if len(q.waiters) == 0 {
		q.waiters = nil
	}
	return group
}

// sizeOf is what a group takes on disk.
func sizeOf(group []*waiter) (size int64) {
	for _, w := range group {
		size += w.diskBytes()
	}
	return size
}

// Append returns nil when the record is on disk. When ctx ends earlier the record may still get there.
func (s *Spool) Append(ctx context.Context, r Record) error {
	result := make(chan error, 1)
	s.Go(r, func(err error) { result <- err }, nil)
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("append to the journal: %w", ctx.Err())
	}
}

// Go is Append without waiting: done is called exactly once, from this goroutine when the record is refused at once and
// from the spool's own otherwise, where it must not block. late, if not nil, is called like it when a record that was
// refused with ErrHangs is on disk after all, before the spool takes another one. The spool owns r.Load from now on.
func (s *Spool) Go(r Record, done func(error), late func()) {
	body, err := appendRecord(make([]byte, 0, 64+len(r.Load)+len(r.Minion)+len(r.JID)), &r)
	if err == nil {
		r.Load = body[len(body)-len(r.Load):] // one copy is enough
		err = s.enqueueRecord(&waiter{rec: r, body: body, done: done, late: late})
	}
	if err != nil {
		s.metrics.countRefused(err)
		done(err)
	}
}

func (s *Spool) enqueueRecord(w *waiter) error {
	n := w.diskBytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != opened:
		return ErrClosed
	case int64(len(w.body)) > s.c.MaxRecord:
		return ErrTooLarge
	case errors.Is(s.fault, ErrHangs):
		return ErrHangs
	case s.bytes+s.waiting.bytes+n > s.c.MaxBytes:
		s.full = true
		return ErrFull
	case s.waiting.bytes+n > s.c.MaxWaiting:
		return ErrBusy
	}
	s.waiting.addWaiter(w)
	s.wakeWriter()
	return nil
}

func (s *Spool) wakeWriter() { signal.Send(s.wake) }

// runWriter is the writer's goroutine: one group after the other.
func (s *Spool) runWriter() {
	for {
		<-s.wake
		for {
			group, end := s.takeGroup()
			if len(group) > 0 {
				s.commitGroup(group)
				continue
			}
			if end {
				return
			}
			break
		}
	}
}

// takeGroup removes the next group from the queue. end says that none will come any more.
func (s *Spool) takeGroup() (group []*waiter, end bool) {
	if s.c.Gather > 0 {
		s.mu.Lock()
		pause := len(s.waiting.waiters) > 0 && s.state == opened
		s.mu.Unlock()
		if pause {
			time.Sleep(s.c.Gather)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	group = s.waiting.takeGroup(s.c.GroupBytes)
	return group, len(group) == 0 && s.state != opened
}

// commitGroup brings a group onto the disk and tells its waiters.
func (s *Spool) commitGroup(group []*waiter) {
	start := time.Now()
	s.mu.Lock()
	s.waiting.writing = group[0]
	s.mu.Unlock()
	gaveUp := make(chan struct{})
	hangs := time.AfterFunc(s.c.Hang, func() {
		defer close(gaveUp)
		s.giveUp(group)
	})
	s.disk.Lock() // which whoever removes a segment may have, and hang
	size, err := s.writeGroup(group)
	if !hangs.Stop() {
		<-gaveUp // it has told all of them
	}
	s.mu.Lock()
	s.waiting.writing = nil
	refused := errors.Is(s.fault, ErrHangs) // by giveUp
	s.mu.Unlock()
	if refused && err == nil {
		tellLate(group)
	}
	s.mu.Lock()
	s.waiting.bytes -= sizeOf(group)
	changed := (s.fault == nil) != (err == nil)
	s.fault = err
	if err == nil {
		s.growLast(size, len(group))
		s.stats.appended += uint64(len(group))
		for _, w := range group {
			s.recent.addRecord(w.rec, int64(len(w.body)))
		}
		close(s.grown)
		s.grown = make(chan struct{})
		s.full = false
	}
	s.mu.Unlock()
	s.disk.Unlock() // not before the books are right: reclaim goes by them
	s.metrics.observeGroup(len(group), size, time.Since(start), err)
	if changed && err != nil {
		s.c.Logger.Error("journal not writable, nothing is acknowledged", "path", s.c.Dir, "err", err)
	} else if changed {
		s.c.Logger.Info("journal writable again", "path", s.c.Dir)
	}
	if refused {
		return
	}
	for _, w := range group {
		w.done(err)
	}
}

// tellLate tells whose records were refused that they are on disk. No other record is taken until then, so that none of
// them is taken twice.
func tellLate(group []*waiter) {
	for _, w := range group {
		if w.late != nil {
			w.late()
		}
	}
}

// giveUp refuses what waits for a disk that does not answer, so that another node can take it. The group that is being
// written may get there all the same.
func (s *Spool) giveUp(group []*waiter) {
	s.mu.Lock()
	if s.waiting.writing != group[0] {
		s.mu.Unlock()
		return
	}
	s.fault = ErrHangs
	queued := s.waiting.waiters
	s.waiting.bytes -= sizeOf(queued)
	s.waiting.waiters = nil
	s.mu.Unlock()
	s.c.Logger.Error("journal not writable, nothing is acknowledged", "path", s.c.Dir, "err", ErrHangs)
	for _, w := range slices.Concat(group, queued) {
		s.metrics.countRefused(ErrHangs)
		w.done(ErrHangs)
	}
}

// writeGroup writes and syncs a group. After an error nothing of it counts: it is cut off again, and when that is not
// certain either the segment gets no more records.
func (s *Spool) writeGroup(group []*waiter) (int64, error) {
	g, err := s.activeSegment(group)
	if err != nil {
		return 0, fmt.Errorf("write journal: %w", err)
	}
	size := sizeOf(group)
	buf := make([]byte, 0, size)
	for i, w := range group {
		w.rec.Seq = s.next + uint64(i)
		buf = appendFrame(buf, g.salt, w.rec.Seq, uint64(g.size), w.body)
	}
	if _, err := s.c.Disk.Write(s.active, buf, g.size); err != nil {
		if s.active.Truncate(g.size) != nil {
			s.closeActive()
		}
		return 0, fmt.Errorf("write journal: %w", err)
	}
	s.mu.Lock()
	s.stats.syncs++
	s.mu.Unlock()
	if err := s.c.Disk.Sync(s.active); err != nil {
		// The kernel forgets what it could not write: a second sync of this file would lie.
		_ = s.active.Truncate(g.size)
		s.closeActive()
		return 0, fmt.Errorf("sync journal: %w", err)
	}
	return size, nil
}

// activeSegment returns the segment to write the group to, a new one when the last is full or not to be trusted.
func (s *Spool) activeSegment(group []*waiter) (*segment, error) {
	if s.active != nil {
		g := s.lastSegment()
		if g.size < s.c.SegmentBytes {
			return g, nil
		}
		s.closeActive()
	}
	s.dropEmpty()
	g, f, err := createSegment(s.c.Dir, s.next)
	if err != nil {
		return nil, err
	}
	s.active = f
	s.mu.Lock()
	s.addSegment(g, g.size)
	s.mu.Unlock()
	return g, nil
}

// dropEmpty removes a last segment without records, whose number a new one would share.
func (s *Spool) dropEmpty() {
	s.mu.Lock()
	n := len(s.segments)
	if n == 0 || s.segments[n-1].first != s.next {
		s.mu.Unlock()
		return
	}
	g := s.segments[n-1]
	s.removeSegment(n - 1)
	s.mu.Unlock()
	if s.removeFile(g) != nil {
		s.mu.Lock()
		s.addSegment(g, g.size)
		s.mu.Unlock()
	}
}

func (s *Spool) closeActive() {
	if s.active != nil {
		_ = s.active.Close()
		s.active = nil
	}
}

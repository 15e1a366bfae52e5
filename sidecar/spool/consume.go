package spool

import (
	"context"
	"saltclusterd/backoff"
	"time"
)

// consumer runs one Consumer.
type consumer struct {
	Consumer
	s      *Spool
	cursor *cursor
	reader reader
	left   []Record      // of a batch it took a part of
	saving chan struct{} // closed at the end of the last checkpoint; nil: there was none

	// guarded by s.mu
	done    uint64 // the record it is done with
	durable uint64 // and that for good
	suspect bool   // what was done since then may be lost: Sync has failed
	rewind  bool   // it is to be done again
	unsaved bool   // a process that was killed has not synced all it has done: Sync may be about another disk by now
	err     error
	failing time.Time // since when err stands
}

// closeTime bounds the last checkpoint: a disk may take minutes to sync what others have written.
const closeTime = 2 * time.Second

func (k *consumer) runConsumer() {
	defer k.reader.close()
	s, pause := k.s, backoff.Backoff{Min: k.s.c.RetryMin, Max: k.s.c.RetryMax}
	checked := time.Now()
	for s.ctx.Err() == nil {
		k.goBack()
		batch, grown, err := k.nextGathered()
		if err == nil && len(batch) > 0 {
			err = k.giveBatch(batch)
		}
		k.noteError(err)
		if time.Since(checked) >= s.c.Checkpoint && k.awaitCheckpoint(0) && k.isBehind() {
			k.startCheckpoint()
			checked = time.Now()
		}
		switch {
		case err != nil:
			k.waitGrown(nil, pause.Next())
		case len(batch) == 0:
			k.waitGrown(grown, s.c.Checkpoint)
			fallthrough
		default:
			pause.Reset()
		}
	}
	k.saveLast()
}

// nextGathered is nextBatch, after the pause that Gather wants.
func (k *consumer) nextGathered() (batch []Record, grown <-chan struct{}, err error) {
	batch, grown, err = k.nextBatch()
	if k.Gather == nil || err != nil || len(batch) == 0 || len(k.left) > 0 || !k.s.endsWith(batch[len(batch)-1].Seq) {
		return batch, grown, err
	}
	d := k.Gather(batch)
	if d <= 0 {
		return batch, grown, nil
	}
	k.waitGrown(nil, d)
	return k.nextBatch()
}

// endsWith says whether no record comes after that one yet.
func (s *Spool) endsWith(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq+1 == s.next
}

// nextBatch returns records that come after what is done, or what to wait for when there are none.
func (k *consumer) nextBatch() (batch []Record, grown <-chan struct{}, err error) {
	s := k.s
	if len(k.left) > 0 {
		return k.left, nil, nil
	}
	s.mu.Lock()
	from, end := k.done+1, s.next
	grown = s.grown
	batch, ok := s.recent.recordsFrom(from, s.c.BatchRecords, s.c.BatchBytes)
	s.mu.Unlock()
	if ok || from >= end {
		return batch, grown, nil
	}
	batch, err = k.reader.readBatch(s, from, end)
	if err == nil && len(batch) == 0 {
		if !k.Optional { // else the others were done with it
			s.noteDamage(Damage{Segment: k.reader.segmentName(), Offset: k.reader.at, Lost: end - from})
		}
		k.reader.close()
		k.advanceTo(end - 1)
	}
	return batch, grown, err
}

func (k *consumer) giveBatch(batch []Record) error {
	n, err := k.Consume(k.s.ctx, batch)
	n = max(0, min(n, len(batch)))
	if k.left = batch[n:]; n == 0 {
		return err
	}
	if k.Sync == nil || k.Once { // else the position must not be on disk before its effects are
		if werr := k.cursor.advanceTo(batch[n-1].Seq); err == nil {
			err = werr
		}
	}
	k.advanceTo(batch[n-1].Seq)
	return err
}

func (k *consumer) advanceTo(to uint64) {
	s := k.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k.done = to
	s.recent.forgetUpTo(s.leastDone(func(k *consumer) uint64 { return k.done }))
}

// leastDone is how far all consumers are that something depends on. s.mu is held.
func (s *Spool) leastDone(far func(*consumer) uint64) uint64 {
	n := s.next - 1
	for _, k := range s.consumers {
		if !k.Optional {
			n = min(n, far(k))
		}
	}
	return n
}

func (k *consumer) noteError(err error) {
	s := k.s
	s.mu.Lock()
	was := k.err
	if k.err = err; err != nil && was == nil {
		k.failing = time.Now()
	}
	s.mu.Unlock()
	if err != nil && was == nil && s.ctx.Err() == nil {
		s.c.Logger.Warn("journal's consumer waits", "consumer", k.Name, "err", err)
	} else if err == nil && was != nil {
		s.c.Logger.Info("journal's consumer continues", "consumer", k.Name)
	}
}

func (k *consumer) isBehind() bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.done > k.durable
}

// startCheckpoint starts a checkpoint in the background: the consumer continues meanwhile.
func (k *consumer) startCheckpoint() {
	done := make(chan struct{})
	k.saving = done
	go func() { // ends when the disk has answered, which Close does not wait for without end
		defer close(done)
		k.writeCheckpoint(context.WithoutCancel(k.s.ctx))
	}()
}

// awaitCheckpoint says whether the checkpoint under way, if any, has ended within that time.
func (k *consumer) awaitCheckpoint(within time.Duration) bool {
	if k.saving == nil {
		return true
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-k.saving:
		return true
	default:
	}
	select {
	case <-k.saving:
		return true
	case <-t.C:
		return false
	}
}

// saveLast is the checkpoint of a spool that closes.
func (k *consumer) saveLast() {
	end := time.Now().Add(closeTime)
	ok := k.awaitCheckpoint(closeTime)
	if ok && k.isBehind() {
		k.startCheckpoint()
		ok = k.awaitCheckpoint(time.Until(end))
	}
	if !ok {
		k.s.c.Logger.Warn("journal closed before its progress was saved: after a power loss some of it is repeated",
			"consumer", k.Name)
	}
}

// writeCheckpoint makes progress survive a power loss and frees segments.
func (k *consumer) writeCheckpoint(ctx context.Context) {
	k.s.mu.Lock()
	done, unsaved := k.done, k.unsaved
	k.s.mu.Unlock()
	if unsaved {
		k.s.c.Disk.All()
	}
	var err error
	if k.Sync != nil {
		err = k.Sync(ctx)
	}
	if k.mustRewind(err) {
		return
	}
	if err == nil {
		err = k.cursor.saveDurable(done)
	}
	if err != nil {
		k.s.c.Logger.Warn("journal's progress not saved", "consumer", k.Name, "err", err)
		return
	}
	k.s.mu.Lock()
	k.durable, k.unsaved = done, false
	k.s.mu.Unlock()
	k.s.removeDone()
}

// mustRewind says whether, after Sync had failed and now has not, everything since the last good one is to be done once
// more: a disk tells of an error once, and what it could not write then it does not write later.
func (k *consumer) mustRewind(err error) bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.rewind = err == nil && k.suspect
	k.suspect = err != nil
	return k.rewind
}

// goBack begins again with what is not done for good, if it has to.
func (k *consumer) goBack() {
	k.s.mu.Lock()
	rewind, durable := k.rewind, k.durable
	if rewind {
		k.rewind, k.done, k.left = false, durable, nil
	}
	k.s.mu.Unlock() // the disk may not answer
	if !rewind {
		return
	}
	if k.Once {
		if err := k.cursor.advanceTo(durable); err != nil {
			k.s.c.Logger.Warn("journal's position not written", "consumer", k.Name, "err", err)
		}
	}
	k.s.c.Logger.Warn("journal's consumer starts over because the disk has failed", "consumer", k.Name, "index", durable)
}

// waitGrown ends with d, the spool, or grown.
func (k *consumer) waitGrown(grown <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-grown:
	case <-k.s.ctx.Done():
	}
}

package spool

import (
	"context"
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
	err     error
	failing time.Time // since when err stands
}

// closeTime bounds the last checkpoint: a disk may take minutes to sync what others have written.
const closeTime = 2 * time.Second

func (k *consumer) run() {
	defer k.reader.close()
	s, pause := k.s, k.s.c.RetryMin
	checked := time.Now()
	for s.ctx.Err() == nil {
		k.goBack()
		batch, grown, err := k.gathered()
		if err == nil && len(batch) > 0 {
			err = k.give(batch)
		}
		k.note(err)
		if time.Since(checked) >= s.c.Checkpoint && k.saved(0) && k.behind() {
			k.save()
			checked = time.Now()
		}
		switch {
		case err != nil:
			k.wait(nil, pause)
			pause = min(2*pause, s.c.RetryMax)
		case len(batch) == 0:
			k.wait(grown, s.c.Checkpoint)
			fallthrough
		default:
			pause = s.c.RetryMin
		}
	}
	k.saveLast()
}

// gathered is next, after the pause that Gather wants.
func (k *consumer) gathered() (batch []Record, grown <-chan struct{}, err error) {
	batch, grown, err = k.next()
	if k.Gather == nil || err != nil || len(batch) == 0 || len(k.left) > 0 || !k.s.endsWith(batch[len(batch)-1].Seq) {
		return batch, grown, err
	}
	d := k.Gather(batch)
	if d <= 0 {
		return batch, grown, nil
	}
	k.wait(nil, d)
	return k.next()
}

// endsWith says whether no record comes after that one yet.
func (s *Spool) endsWith(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq+1 == s.next
}

// next returns records that come after what is done, or what to wait for when there are none.
func (k *consumer) next() (batch []Record, grown <-chan struct{}, err error) {
	s := k.s
	if len(k.left) > 0 {
		return k.left, nil, nil
	}
	s.mu.Lock()
	from, end := k.done+1, s.next
	grown = s.grown
	batch, ok := s.recent.from(from, s.c.BatchRecords, s.c.BatchBytes)
	s.mu.Unlock()
	if ok || from >= end {
		return batch, grown, nil
	}
	batch, err = k.reader.read(s, from, end)
	if err == nil && len(batch) == 0 {
		if !k.Optional { // else the others were done with it
			s.damaged(Damage{Segment: k.reader.name(), Offset: k.reader.at, Lost: end - from})
		}
		k.reader.close()
		k.advance(end - 1)
	}
	return batch, grown, err
}

func (k *consumer) give(batch []Record) error {
	n, err := k.Consume(k.s.ctx, batch)
	n = max(0, min(n, len(batch)))
	if k.left = batch[n:]; n == 0 {
		return err
	}
	if k.Sync == nil || k.Once { // else the position must not be on disk before its effects are
		if werr := k.cursor.advance(batch[n-1].Seq); err == nil {
			err = werr
		}
	}
	k.advance(batch[n-1].Seq)
	return err
}

func (k *consumer) advance(to uint64) {
	s := k.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k.done = to
	s.recent.forget(s.least(func(k *consumer) uint64 { return k.done }))
}

// least is how far all consumers are that something depends on. s.mu is held.
func (s *Spool) least(far func(*consumer) uint64) uint64 {
	n := s.next - 1
	for _, k := range s.consumers {
		if !k.Optional {
			n = min(n, far(k))
		}
	}
	return n
}

func (k *consumer) note(err error) {
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

func (k *consumer) behind() bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.done > k.durable
}

// save starts a checkpoint in the background: the consumer continues meanwhile.
func (k *consumer) save() {
	done := make(chan struct{})
	k.saving = done
	go func() { // ends when the disk has answered, which Close does not wait for without end
		defer close(done)
		k.checkpoint(context.WithoutCancel(k.s.ctx))
	}()
}

// saved says whether the checkpoint under way, if any, has ended within that time.
func (k *consumer) saved(within time.Duration) bool {
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
	ok := k.saved(closeTime)
	if ok && k.behind() {
		k.save()
		ok = k.saved(time.Until(end))
	}
	if !ok {
		k.s.c.Logger.Warn("journal closed before its progress was saved: after a power loss some of it is repeated",
			"consumer", k.Name)
	}
}

// checkpoint makes progress survive a power loss and frees segments.
func (k *consumer) checkpoint(ctx context.Context) {
	k.s.mu.Lock()
	done := k.done
	k.s.mu.Unlock()
	var err error
	if k.Sync != nil {
		err = k.Sync(ctx)
	}
	if k.again(err) {
		return
	}
	if err == nil {
		err = k.cursor.save(done)
	}
	if err != nil {
		k.s.c.Logger.Warn("journal's progress not saved", "consumer", k.Name, "err", err)
		return
	}
	k.s.mu.Lock()
	k.durable = done
	k.s.mu.Unlock()
	k.s.reclaim()
}

// again says whether, after Sync had failed and now has not, everything since the last good one is to be done once
// more: a disk tells of an error once, and what it could not write then it does not write later.
func (k *consumer) again(err error) bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.rewind = err == nil && k.suspect
	k.suspect = err != nil
	return k.rewind
}

// goBack begins again with what is not done for good, if it has to.
func (k *consumer) goBack() {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if !k.rewind {
		return
	}
	k.rewind, k.done, k.left = false, k.durable, nil
	if k.Once {
		if err := k.cursor.advance(k.durable); err != nil {
			k.s.c.Logger.Warn("journal's position not written", "consumer", k.Name, "err", err)
		}
	}
	k.s.c.Logger.Warn("journal's consumer begins again because the disk has failed", "consumer", k.Name, "index", k.durable)
}

// wait ends with d, the spool, or grown.
func (k *consumer) wait(grown <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-grown:
	case <-k.s.ctx.Done():
	}
}

package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Spool is the journal. Create it with New, then Open; Close ends it.
type Spool struct {
	c       Config
	metrics *metrics
	lock    *os.File

	ctx    context.Context // of the consumers
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // tells the writer that something waits

	disk   sync.Mutex // held while a group is written and while segments are removed
	active *os.File   // file of the last segment; nil when the next group must start a new one

	mu      sync.Mutex // guards what follows
	state   int        // fresh, open or closed
	gone    bool       // the directory is not this spool's any more
	waiting waitQueue
	segmentLog
	recent    recent
	grown     chan struct{} // closed and replaced when records were added
	fault     error         // what the disk said last; nil when it worked
	full      bool
	stats     counters
	consumers []*consumer
}

const (
	fresh = iota
	opened
	closed
)

// New checks the configuration.
func New(c Config) (*Spool, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	return &Spool{
		c: c, metrics: newMetrics(c.Register), wake: make(chan struct{}, 1), grown: make(chan struct{}),
		recent: recent{limit: c.KeepBytes},
	}, nil
}

// Open takes the directory, reads what is there and starts to deliver it. ctx ends nothing later. Errors: ErrLocked
// while another process (the one that is being replaced, say) still has it; whatever the disk says.
func (s *Spool) Open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	if err := s.recoverDir(); err != nil {
		s.closeFiles()
		return fmt.Errorf("open spool: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.state, s.gone = opened, false
	s.mu.Unlock()
	s.wg.Go(s.runWriter)
	for _, k := range s.consumers {
		s.wg.Go(k.runConsumer)
	}
	return nil
}

func (s *Spool) noteDamage(d Damage) {
	s.mu.Lock()
	s.stats.damages++
	s.stats.lost += d.Lost
	s.mu.Unlock()
	s.metrics.countDamage(d)
	s.c.Logger.Error("journal damaged", "path", d.Segment, "offset", d.Offset, "bytes", d.Bytes, "lost", d.Lost,
		"unconfirmed", d.Unconfirmed)
}

func (s *Spool) takeLock() error {
	f, err := os.OpenFile(filepath.Join(s.c.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return errors.Join(err, f.Close())
	}
	s.lock = f
	return nil
}

func (s *Spool) closeFiles() {
	s.disk.Lock() // not while a segment is being removed: the next process may write to it
	defer s.disk.Unlock()
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	for _, k := range s.consumers {
		_ = k.cursor.f.Close()
	}
	if s.active != nil {
		_ = s.active.Close()
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// Close writes what waits, ends the consumers (their contexts end; what they have not returned from stays) and makes
// their progress survive, unless the disk takes too long for that.
func (s *Spool) Close() error {
	s.mu.Lock()
	was := s.state
	s.state = closed
	s.mu.Unlock()
	if was != opened {
		return nil
	}
	s.wakeWriter()
	s.cancel()
	s.wg.Wait()
	s.closeFiles()
	return nil
}

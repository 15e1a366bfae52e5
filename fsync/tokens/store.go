package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/feed"
	"saltclusterd/gossip/node"
)

// Store carries tokens between the local master and the other members. Create it with New.
type Store struct {
	cfg     Config
	disk    disk
	log     *slog.Logger
	metrics *metrics
	off     string

	mu      sync.Mutex // guards what follows, and the files while they are looked at or written
	table   table
	gone    map[print]time.Time // live tokens whose files are missing, since when
	dirty   bool                // the table is not saved
	scanned bool                // the first scan is done
	full    bool                // tokens were turned away, and it was said

	feed   *feed.Feed[print, *peer]
	looked chan struct{} // closed after the first scan: before, a digest would tell of lacks that are none
	ready  chan struct{} // closed when the peers may hear of this node and tell it: after that, and Config.Hold

	run    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Timing = cfg.Timing.withDefaults()
	s := &Store{
		cfg: cfg, disk: newDisk(cfg.Master),
		log: cfg.Logger, metrics: newMetrics(cfg.Registerer), off: cfg.Master.off(),
		table: table{entries: map[print]entry{}}, gone: map[print]time.Time{},
		looked: make(chan struct{}), ready: make(chan struct{}),
	}
	s.feed = s.newFeed()
	return s, nil
}

// Open reads the table and starts. It does not wait for the first scan.
func (s *Store) Open(ctx context.Context) error {
	if s.off != "" {
		s.log.Warn("eauth tokens are not replicated", "reason", s.off)
		return nil
	}
	if err := os.MkdirAll(s.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("open tokens: %w", err)
	}
	if err := s.disk.tidy(); err != nil {
		s.fail("tidy", err)
	}
	t, err := loadTable(s.cfg.StateDir)
	if errors.Is(err, errNewer) {
		return fmt.Errorf("open tokens: %w", err)
	}
	if err != nil {
		s.log.Warn("it is not known which tokens were revoked while saltclusterd was away", "err", err)
	}
	s.mu.Lock()
	s.table = t
	s.run, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Unlock()
	s.feed.Open(s.run, s.cfg.Changed(s.run))
	s.wg.Go(func() { s.keepScanning(s.run) })
	s.wg.Go(func() { s.keepSaving(s.run) })
	s.wg.Go(func() { s.begin(s.run) })
	return nil
}

// begin lets the senders begin.
func (s *Store) begin(ctx context.Context) {
	for _, event := range []<-chan struct{}{s.looked, s.cfg.Hold} {
		if event == nil {
			continue
		}
		select {
		case <-event:
		case <-ctx.Done():
			return
		}
	}
	close(s.ready)
}

// Close stops, waits and saves the table.
func (s *Store) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.feed.Close()
	s.wg.Wait()
	return s.save()
}

// Status is what an operator may want to know.
type Status struct {
	Off           string // why nothing is replicated; empty when it is
	Live, Revoked int
	Peers         []PeerStatus
}

// PeerStatus tells how far another member is behind.
type PeerStatus struct {
	ID      node.ID
	Pending int    // tokens it has yet to hear of
	Err     string // of the last push; empty when it went well
}

// Status returns the present state.
func (s *Store) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Off: s.off}
	st.Live, st.Revoked = s.table.count()
	for _, l := range s.feed.Status() {
		p := PeerStatus{ID: l.ID, Pending: l.Pending}
		if l.Err != nil {
			p.Err = l.Err.Error()
		}
		st.Peers = append(st.Peers, p)
	}
	return st
}

// Progress tells of each member how much of what it has is here; nil while nothing is replicated.
func (s *Store) Progress() []feed.Progress { return s.feed.Progress() }

func (t table) count() (live, revoked int) {
	for _, e := range t.entries {
		if e.revoked {
			revoked++
		} else {
			live++
		}
	}
	return live, revoked
}

func (s *Store) keepSaving(ctx context.Context) {
	for backoff.Sleep(ctx, s.cfg.Timing.Save) {
		if err := s.save(); err != nil {
			s.fail("save", err)
		}
	}
}

// save stores the table if it has changed.
func (s *Store) save() error {
	s.mu.Lock()
	live, revoked := s.table.count()
	s.metrics.live.Set(float64(live))
	s.metrics.revoked.Set(float64(revoked))
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	content, err := s.table.encode()
	s.dirty = err != nil
	s.mu.Unlock()
	// first the files: one that the table has, and that is gone after a power failure, would count as revoked
	if err == nil {
		err = s.disk.sync()
	}
	if err == nil {
		err = saveTable(s.cfg.StateDir, content)
	}
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
	}
	return err
}

// fail counts and logs what could not be done.
func (s *Store) fail(op string, err error) {
	s.metrics.failures.WithLabelValues(op).Inc()
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("tokens not handled", "op", op, "err", err)
	}
}

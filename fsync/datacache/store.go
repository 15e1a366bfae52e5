package datacache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/feed"
	"saltclusterd/gossip/node"
)

// Store carries data between the local master's cache and the other members. Create it with New.
type Store struct {
	cfg     Config
	disk    disk
	log     *slog.Logger
	metrics *metrics
	off     string

	layout layout
	turns  turns
	edits  chan struct{} // a place for each change of a small mine at work
	large  chan struct{} // and of a large one
	reads  chan struct{} // and for whoever reads large files

	mu      sync.Mutex // guards what follows
	table   map[string]entry
	seen    map[string]sight    // of files that are as the table says
	missed  map[string]struct{} // ids refused because their key is not accepted here yet
	changes int                 // of the table, not yet saved
	scanned bool                // the first scan is done

	feed    *feed.Feed[string, *peer]
	touched *feed.Names[string]
	look    chan struct{} // gets a value when something is touched
	looked  chan struct{} // closed after the first scan: before, a digest would tell of lacks that are none
	ready   chan struct{} // closed when the peers may hear of this node and tell it: after that, and Config.Hold
	bodies  chan struct{} // bounds requests in memory

	run    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// maxMissed bounds the ids remembered because they came before their key.
const maxMissed = 10_000

// maxBodies is how many requests may be in memory at a time.
const maxBodies = 4

// maxReads is how many read files above largeFile at a time.
const (
	maxReads  = 2
	largeFile = 64 << 10
)

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Timing = cfg.Timing.withDefaults()
	look := make(chan struct{}, 1)
	s := &Store{
		cfg: cfg, disk: disk{cfg.Master.CacheDir, cfg.Master.UID, cfg.Master.GID}, log: cfg.Logger,
		metrics: newMetrics(cfg.Registerer, cfg.Kind), off: cfg.Master.off(cfg.Kind), layout: newLayout(cfg.Kind, cfg.Master),
		turns: newTurns(), edits: make(chan struct{}, maxEdits), large: make(chan struct{}, maxLarge),
		reads: make(chan struct{}, maxReads),
		table: map[string]entry{}, seen: map[string]sight{}, missed: map[string]struct{}{},
		touched: feed.NewNames[string](maxPending, func() { signal(look) }), look: look,
		looked: make(chan struct{}), ready: make(chan struct{}), bodies: make(chan struct{}, maxBodies),
	}
	s.feed = s.newFeed()
	return s, nil
}

// Open reads the table and starts. It does not wait for the first scan.
func (s *Store) Open(ctx context.Context) error {
	if s.off != "" {
		s.log.Warn("data of minions are not replicated", "kind", s.cfg.Kind, "reason", s.off)
		return nil
	}
	if reason := s.cfg.Master.pillarsOff(); reason != "" && s.cfg.Kind == Data {
		s.log.Info("pillars cached by other masters are not written", "reason", reason)
	}
	if err := os.MkdirAll(s.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("open minion data: %w", err)
	}
	table, err := loadTable(s.tablePath())
	if err != nil {
		s.log.Warn("minion data are known by the times of their files only", "kind", s.cfg.Kind, "err", err)
	}
	s.mu.Lock()
	s.table = table
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

// Close stops, waits and saves the table. Then nothing is written any more, whatever peers send.
func (s *Store) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.feed.Close()
	s.wg.Wait()
	s.turns.await()
	return s.save()
}

// Touched says that the local master has just written data of a minion. It never blocks.
func (s *Store) Touched(id string) {
	if s.off == "" && validID(id) {
		s.touched.Add(id)
	}
}

// Off says why nothing is replicated; empty when it is.
func (s *Store) Off() string { return s.off }

// Status is what an operator may want to know.
type Status struct {
	Off        string // why nothing is replicated; empty when it is
	PillarsOff string // why pillars of others are not written
	Minions    int    // whose data are known
	Peers      []PeerStatus
}

// PeerStatus tells how far another member is behind.
type PeerStatus struct {
	ID      node.ID
	Pending int    // minions whose data it has yet to get
	Err     string // of the last push; empty when it went well
}

// Status returns the present state.
func (s *Store) Status() Status {
	st := Status{Off: s.off, PillarsOff: s.cfg.Master.pillarsOff()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Minions = len(s.table)
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

// keepScanning looks at what Touched says, and from time to time at everything.
func (s *Store) keepScanning(ctx context.Context) {
	s.scan()
	s.mu.Lock()
	s.scanned = true
	s.mu.Unlock()
	close(s.looked)
	s.sweep()
	tick := time.NewTicker(s.cfg.Timing.Scan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.look:
			ids, whole := s.touched.Take(maxPending)
			if !whole {
				s.scan()
				continue
			}
			s.lookAt(ids)
		case <-tick.C:
			s.scan()
			s.purgeUnknown()
			s.wantMissed()
		}
	}
}

// scan looks at the data of all minions.
func (s *Store) scan() {
	began := time.Now()
	root, err := s.disk.root()
	if err != nil {
		s.fail("scan", "", err)
		return
	}
	defer root.Close()
	ids, err := s.layout.ids(root, s.cfg.Keys.Known)
	known := s.copyOfTable()
	if err != nil {
		s.fail("scan", "", err)
		return
	}
	for _, id := range ids {
		delete(known, id)
		s.examine(root, id, true)
	}
	for id := range known { // whose files are gone, or in the layout of another version
		s.examine(root, id, false)
	}
	s.metrics.scan.Observe(time.Since(began).Seconds())
}

// sweep removes temporary files of predecessors.
func (s *Store) sweep() {
	root, err := s.disk.root()
	if err != nil {
		s.fail("sweep", "", err)
		return
	}
	defer root.Close()
	ids, err := s.layout.ids(root, s.cfg.Keys.Known)
	if err = errors.Join(err, sweep(root, s.layout.dirs(ids))); err != nil {
		s.fail("sweep", "", err)
	}
}

func (s *Store) lookAt(ids []string) {
	root, err := s.disk.root()
	if err != nil {
		s.fail("look", "", err)
		return
	}
	defer root.Close()
	for _, id := range ids {
		s.examine(root, id, false)
	}
}

// examine looks at one minion and tells the others the news. With quick, files that look as before are not read.
func (s *Store) examine(root *os.Root, id string, quick bool) {
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	if s.closed() != nil {
		return
	}
	if _, err := s.observe(root, id, quick); err != nil {
		s.fail("look", id, err)
	}
}

// entry is what the table says of a minion.
func (s *Store) entry(id string) (e entry, had bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, had = s.table[id]
	return e, had
}

func (s *Store) copyOfTable() map[string]entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.table)
}

// open says whether this node knows what it has.
func (s *Store) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scanned && s.run != nil && s.run.Err() == nil
}

// closed returns why nothing may be read or written any more.
func (s *Store) closed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil
	}
	return s.run.Err()
}

func (s *Store) tablePath() string { return filepath.Join(s.cfg.StateDir, s.cfg.Kind.table()) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *Store) keepSaving(ctx context.Context) {
	for backoff.Sleep(ctx, s.cfg.Timing.Save) {
		if err := s.save(); err != nil {
			s.fail("save", "", err)
		}
	}
}

// save stores the table if it has changed.
func (s *Store) save() error {
	s.mu.Lock()
	n := s.changes
	s.metrics.minions.Set(float64(len(s.table)))
	if n == 0 {
		s.mu.Unlock()
		return nil
	}
	table := maps.Clone(s.table)
	s.mu.Unlock()
	content, err := encodeTable(table)
	if err == nil {
		err = saveTable(s.tablePath(), content)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.changes -= n
	s.mu.Unlock()
	return nil
}

// fail counts and logs what could not be done.
func (s *Store) fail(op, id string, err error) {
	s.metrics.failures.WithLabelValues(op).Inc()
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("minion data not handled", "kind", s.cfg.Kind, "op", op, "minion", id, "err", err)
	}
}

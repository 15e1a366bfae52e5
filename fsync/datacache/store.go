package datacache

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"saltclusterd/fsync/feed"
	"saltclusterd/fsync/replica"
	"saltclusterd/signal"
)

// Store carries data between the local master's cache and the other members. Create it with New.
type Store struct {
	*replica.Replica[string, *peer, message]
	cfg     Config
	disk    disk
	log     *slog.Logger
	metrics *metrics

	layout layout
	turns  turns
	edits  chan struct{} // a place for each change of a small mine at work
	large  chan struct{} // and of a large one
	reads  chan struct{} // and for readers of large files

	mu     sync.Mutex // guards what follows
	table  map[string]entry
	seen   map[string]sight    // of files that are as the table says
	missed map[string]struct{} // ids refused because their key is not accepted here yet

	touched *feed.Names[string]
	look    chan struct{} // gets a value when something is touched
}

// maxMissed bounds the ids remembered because they came before their key.
const maxMissed = 10_000

// maxReads is how many read files above largeFile at a time.
const (
	maxReads  = 2
	largeFile = 64 << 10
)

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	look := make(chan struct{}, 1)
	s := &Store{
		disk: disk{cfg.Master.CacheDir, cfg.Master.UID, cfg.Master.GID}, layout: newLayout(cfg.Kind, cfg.Master),
		turns: newTurns(), edits: make(chan struct{}, maxEdits), large: make(chan struct{}, maxLarge),
		reads: make(chan struct{}, maxReads),
		table: map[string]entry{}, seen: map[string]sight{}, missed: map[string]struct{}{},
		touched: feed.NewNames[string](maxPending, func() { signal.Send(look) }), look: look,
	}
	s.metrics = newMetrics(cfg.Registerer, cfg.Kind, s.count)
	var err error
	s.Replica, err = replica.New(&cfg.Config, replica.Spec[string, *peer, message]{
		Name: "minion data", Off: cfg.Master.off(cfg.Kind), OffLevel: slog.LevelWarn, Pace: pace,
		Table: replica.Table{File: cfg.Kind.table(), Load: s.loadTable, Encode: s.encodeTable, Disposable: true,
			Lost: "minion data are recognised by the times of their files only"},
		Pull: replica.Puller[string]{Offered: s.askOffer, Fetch: s.fetch, Page: maxRecords, AtATime: 3},
		Path: cfg.Kind.Path(), MaxBody: MaxBody, Take: s.handle,
		Decode:    func(body []byte) (message, error) { return decode(cfg.Kind, body) },
		NewSender: s.newPeer, Limit: maxPending, Batch: maxRecords,
		After: func(bool) { // changes of keys come this way, too
			s.purgeUnknown()
			s.wantMissed()
		},
		Tasks: []func(context.Context){s.keepScanning}, Settle: s.turns.await,
		Failures: s.metrics.failures, Fault: "minion data not handled",
	})
	s.cfg, s.log = cfg, cfg.Logger
	return s, err
}

// Open reads the table and starts. It does not wait for the first scan.
func (s *Store) Open(ctx context.Context) error {
	if reason := s.cfg.Master.pillarsOff(); reason != "" && s.cfg.Kind == Data && s.Off() == "" {
		s.log.Info("pillars cached by other masters are not written", "reason", reason)
	}
	return s.Replica.Open(ctx)
}

// Touched says that the local master has just written data of a minion. It never blocks.
func (s *Store) Touched(id string) {
	if s.Off() == "" && validID(id) {
		s.touched.Add(id)
	}
}

// Status is what an operator may want to know.
type Status struct {
	Off        string // why nothing is replicated; empty when it is
	PillarsOff string // why pillars of others are not written
	Minions    int    // whose data are known
	Peers      []replica.PeerStatus
}

// Status returns the present state.
func (s *Store) Status() Status {
	return Status{Off: s.Off(), PillarsOff: s.cfg.Master.pillarsOff(), Minions: s.count(), Peers: s.Peers()}
}

// count is how many minions' data are known.
func (s *Store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table)
}

// keepScanning looks at what Touched says, and from time to time at everything.
func (s *Store) keepScanning(ctx context.Context) {
	s.scan()
	s.SetScanned()
	s.sweep()
	tick := time.NewTicker(s.cfg.Scan)
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
	if s.Closed() != nil {
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

// fail counts and logs what could not be done.
func (s *Store) fail(op, id string, err error) { s.Fail(op, err, "minion", id) }

package roots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"saltclusterd/backoff"
	"saltclusterd/durable"
	"saltclusterd/fsync/content"
	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/tree"
)

// Store keeps the slots of this node as the cluster has them. Create it with New.
type Store struct {
	cfg      Config
	ignore   scan.Ignore
	log      *slog.Logger
	metrics  *metrics
	db       *db
	transfer *content.Transfer
	requests chan request
	extents  extents
	recent   recent
	watcher  *fsnotify.Watcher
	copies   copies
	hooks    hooks

	pace   // of the loop
	disk   // of the loop
	author // of the loop

	mu sync.Mutex // guards view
	view

	run    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// extents are how large trees are.
type extents struct {
	sync.Mutex
	tree.Extents
}

// pace is when and why the loop does a round.
type pace struct {
	dirty    bool   // live may differ from what the last scan saw
	accepted string // the directory of which an operator says that what looks like an accident is none
	actedOn  logKey
	retry    backoff.Backoff
	lastSave time.Time
	// collected is the base at which unused objects were last removed.
	collected uint64
	outrun    int                 // how often the head has moved on, one time after the other, while it was brought here
	ordered   map[SlotName]string // what Config.Order said at the last look
}

// disk is what the disk has of switches, and is to get.
type disk struct {
	baseUnsaved bool
	pending     *journal          // a switch that has begun
	ending      *ending           // what is left to do of it when only the disk is waited for
	onDisk      map[SlotName]Hash // the slots of the base that was saved last
	away        map[SlotName]away // switches that wait for their directories
}

// author is what this node has proposed.
type author struct {
	boot      string     // the machine's run
	lostSince time.Time  // since when no node has what this disk has lost
	proposed  []proposed // the last one is the newest
	found     uint64     // the head when this node started
}

// view is what the loop tells others.
type view struct {
	slots    []*slotState
	base     base
	live     tree.Memory // the root of what the last scan saw
	liveRoot Hash
	progress Progress
	problem  string // of the last round
	watching bool
	lastScan time.Time
	// unwatched is when the kernel last refused hints.
	unwatched time.Time
	scanTook  time.Duration
	switched  *Switch
	kept      map[SlotName]map[Hash]keptContent
	located   map[Hash]location // nil: to be made anew
	conflict  map[string]Conflict
}

// hooks are for tests.
type hooks struct {
	device uint64       // added to the numbers of file systems
	step   func() error // called before each change of a switch
	blind  bool         // no hints from the kernel
	limit  func() error // what it refuses them with
}

// slotState is what is known of a configured slot.
type slotState struct {
	Slot
	unavailable string // why; empty when it is fine
	missing     bool   // the directory does not exist
	replaced    bool   // it is left alone because another directory is in its place
	unmade      bool   // it could not be made
	ident       dirIdent
	seen        dirIdent // at the last look, also of one that is left alone
	index       scan.Index
	dir         Hash // of the last scan
	objects     tree.Memory
	files       int
	bytes       int64
	problems    []string
	restlessAt  time.Time // since when each scan has found files that were changing; zero: the last one did not
	changing    string    // one of these files
	area        string
	unsaved     bool // the index
	spell       spell
}

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxDeletePercent == 0 {
		cfg.MaxDeletePercent = 25
	}
	if cfg.HistoryBytes == 0 {
		cfg.HistoryBytes = 1 << 30
	}
	if cfg.Ignore == nil {
		cfg.Ignore = DefaultIgnore()
	}
	cfg.Timing = cfg.Timing.withDefaults()
	ignore, err := scan.NewIgnore(cfg.Ignore)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	s := &Store{
		cfg: cfg, ignore: ignore, log: cfg.Logger, metrics: newMetrics(cfg.Registerer), requests: make(chan request),
		copies: newCopies(),
		pace:   pace{dirty: true, retry: backoff.Backoff{Min: cfg.Timing.Retry, Max: cfg.Timing.RetryMax}},
		author: author{boot: durable.BootID()},
		view: view{
			kept: map[SlotName]map[Hash]keptContent{}, conflict: map[string]Conflict{}, live: tree.Memory{},
			base: base{Slots: map[SlotName]Hash{}},
		},
	}
	s.transfer = content.New(content.Config{
		Peers: cfg.Peers, Source: source{s}, Stall: cfg.Timing.Stall, Logger: cfg.Logger, Fetched: s.metrics.fetched,
		Sent: s.metrics.sent, Failed: s.metrics.failures.WithLabelValues("fetch"),
	})
	for _, slot := range cfg.Slots {
		s.slots = append(s.slots, &slotState{Slot: slot, unavailable: "not scanned yet"})
	}
	return s, nil
}

// DefaultIgnore is what version control, editors and file systems leave in directories.
func DefaultIgnore() []string { return scan.DefaultIgnore() }

// Open reads the database and starts. It does not wait for the first scan.
func (s *Store) Open(ctx context.Context) error {
	if s.cfg.Mode == ModeOff {
		s.log.Info("file_roots and pillar_roots are not replicated", "reason", "switched off")
		return nil
	}
	var err error
	if s.db, err = openDB(s.cfg.StateDir); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return errors.Join(fmt.Errorf("open roots: %w", err), s.db.close())
	}
	s.run, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if head, ok := s.cfg.Log.Head(); ok {
		s.found = head.Number
	}
	changed := s.cfg.Log.Changed(s.run)
	news := s.startWatch()
	s.wg.Go(func() { s.loop(s.run, changed, news) })
	return nil
}

// load reads what an earlier run has left.
func (s *Store) load() error {
	if _, err := s.db.get(bucketMeta, keyBase, &s.base); err != nil {
		return err
	}
	s.base = s.base.clone()
	s.collected, s.onDisk = s.base.Number, s.base.Slots
	if _, err := s.db.get(bucketMeta, keyAway, &s.away); err != nil {
		return err
	}
	if _, err := s.db.get(bucketMeta, keyProposals, &s.proposed); err != nil {
		return err
	}
	var spells map[SlotName]spell
	if _, err := s.db.get(bucketMeta, keySpells, &spells); err != nil {
		return err
	}
	for _, st := range s.slots {
		st.spell = spells[st.Name]
	}
	if err := s.loadPending(); err != nil {
		return err
	}
	if err := each(s.db, bucketConflicts, func(id string, c Conflict) { s.conflict[id] = c }); err != nil {
		return err
	}
	if err := each(s.db, bucketKept, func(key string, m map[Hash]keptContent) {
		if slot, err := tree.ParseSlot(key); err == nil {
			s.kept[slot] = m
		}
	}); err != nil {
		return err
	}
	for _, st := range s.slots {
		var err error
		if st.index, err = loadIndex(s.cfg.StateDir, st.Name); err != nil {
			s.log.Warn("index of a slot not read, its files will be", "path", st.Dir, "err", err)
		}
	}
	return nil
}

// loadPending finds out whether a switch was interrupted.
func (s *Store) loadPending() error {
	var j journal
	found, err := s.db.get(bucketMeta, keyJournal, &j)
	if err != nil {
		return err
	}
	if !found {
		note, err := readNote(s.cfg.StateDir)
		if err != nil || note == nil || note.Base.Number < s.base.Number {
			return err
		}
		j = *note
	}
	s.pending = &j
	return nil
}

// Close stops, waits, and saves the indexes.
func (s *Store) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.wg.Wait()
	s.transfer.Close() // answers under way use the database
	s.saveIndexes()
	return errors.Join(s.saveBase(), s.db.close())
}

// saveIndexes writes what is known of files.
func (s *Store) saveIndexes() {
	for _, st := range s.slots {
		if !st.unsaved {
			continue
		}
		if err := saveIndex(s.cfg.StateDir, st.Name, st.index); err != nil {
			s.log.Warn("index of a slot not saved", "path", st.Dir, "err", err)
			continue
		}
		st.unsaved = false
	}
	s.lastSave = time.Now()
}

package keydir

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
)

const (
	// saveEvery is how far the stored base may lag; what it misses is found out again by comparing.
	saveEvery = time.Second
	// maxDirty is up to how many changed ids are looked at one by one.
	maxDirty = 4096
	// scanShare bounds the time spent on looking at everything: one part in so many.
	scanShare = 6
	// maxLogged bounds how many keys of one round are logged by name when all is well.
	maxLogged = 20
)

// loop owns the machine, the disk and the base. All its methods run on one goroutine.
type loop struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics

	m      *machine // nil until the view is good to work with
	disk   *disk
	writer *writer
	watch  *watcher
	marker marker
	scanState
	storeState
	proposalState
	published
	baseDir

	viewed uint64                      // revision of the view that was dealt with
	denied uint64                      // and of its denied keys
	held   string                      // why the directories cannot be read
	forget <-chan chan<- heldForgotten // see Dir.Forget
	ctx    context.Context             // of runLoop
	due    time.Time                   // next round
}

// baseDir is the directory where the base is kept.
type baseDir struct {
	dir    string
	stored *base // what was there at the start; nil: nothing
	saved  time.Time
}

// scanState is what is to be looked at, and when everything was.
type scanState struct {
	dirty    map[string]struct{} // ids to look at
	scanDue  bool                // all is to be looked at
	scanned  time.Time           // end of the last look at everything
	scanTook time.Duration
	blind    bool // no watcher: look often
}

func (s *scanState) markDirty(id string) { s.dirty[id] = struct{}{} }

// noteHint notes that the key of id may have changed.
func (s *scanState) noteHint(id string) {
	if len(s.dirty) >= maxDirty {
		s.scanDue = true
		return
	}
	s.markDirty(id)
}

// rescanIn is how long after a look at everything the next is due, which is every so often where there is a watcher.
func (s *scanState) rescanIn(every time.Duration) time.Duration {
	if s.blind {
		return max(time.Second, 20*s.scanTook)
	}
	return every
}

// isScanDue says whether everything is to be looked at, and when it is, if that is not to be now.
func (s *scanState) isScanDue(now time.Time, every time.Duration) (due bool, later time.Time) {
	if s.scanned.IsZero() {
		return true, later
	}
	due = s.scanDue || now.Sub(s.scanned) >= s.rescanIn(every)
	if at := s.scanned.Add(scanShare * s.scanTook); due && now.Before(at) {
		return false, at
	}
	return due, later
}

// noteScan notes that everything was looked at.
func (s *scanState) noteScan(began time.Time) {
	s.scanned = time.Now()
	s.scanTook = s.scanned.Sub(began)
	s.scanDue = false
}

func (d *Dir) newLoop() (*loop, error) {
	based, name := d.cfg.StateDir, d.cfg.Node
	if d.cfg.Shared != nil {
		based, name = filepath.Join(d.cfg.PKIDir, sharedBase), sharedMarker
	}
	for _, dir := range []string{d.cfg.StateDir, based} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	stored, err := loadBase(based)
	if err != nil {
		return nil, err
	}
	dk := newDisk(d.cfg.PKIDir, &invalidEntries{log: d.cfg.Logger})
	st, err := newStore(d.cfg.PKIDir, d.cfg.Store)
	if err != nil {
		return nil, err
	}
	l := &loop{
		cfg: d.cfg, log: d.cfg.Logger, metrics: d.metrics, disk: dk,
		writer: &writer{
			disk: dk, mode: d.cfg.Mode,
			overruled: &overruledFiles{dir: filepath.Join(d.cfg.StateDir, "keys-aside")},
			work:      &d.work,
		},
		marker: newMarker(d.cfg.PKIDir, name), forget: d.forget,
		scanState:     scanState{dirty: map[string]struct{}{}, scanDue: true},
		storeState:    storeState{store: st, lacking: map[subject]struct{}{}},
		proposalState: proposalState{proposer: newProposer(d.cfg.Log, d.cfg.Timing.Propose)},
		published:     published{synced: &d.synced, status: &d.store, settled: &d.settled, heldKeys: &d.heldKeys},
		baseDir:       baseDir{dir: based, stored: stored},
	}
	if st != nil {
		st.onLostPages = l.markBankStrange
	}
	if l.watch, err = d.watcher(); err != nil {
		l.log.Warn("key directories are polled", "err", err)
		l.blind = true
	}
	return l, nil
}

func (l *loop) runLoop(ctx context.Context) error {
	defer l.watch.close()
	l.ctx = ctx
	l.writer.removeTemps()
	changes := l.cfg.Log.Watch(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = l.saveBase(time.Now(), true) // logged; what it misses is found out again
			return context.Cause(ctx)
		case ev := <-l.watch.events():
			l.noteEvent(ev)
		case err := <-l.watch.errors():
			l.watchFailed(err)
		case _, ok := <-changes:
			if !ok {
				changes = nil
			}
			l.wakeIn(0)
		case answer := <-l.forget:
			answer <- l.forgetHeld()
			l.wakeIn(0)
		case b := <-l.proposer.out:
			l.noteBatch(b)
			l.wakeIn(0)
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(l.due) {
			l.due = now.Add(l.rescanIn(l.cfg.Timing.Rescan))
			l.runRound(now)
		}
		timer.Reset(time.Until(l.due))
	}
}

// wakeIn makes the next round come no later than in d.
func (l *loop) wakeIn(d time.Duration) {
	if at := time.Now().Add(d); at.Before(l.due) {
		l.due = at
	}
}

func (l *loop) wakeAt(at time.Time) {
	if !at.IsZero() && at.Before(l.due) {
		l.due = at
	}
}

// noteEvent notes where something has changed.
func (l *loop) noteEvent(ev fsnotify.Event) {
	name := filepath.Base(ev.Name)
	switch {
	case filepath.Dir(filepath.Clean(ev.Name)) == filepath.Clean(l.cfg.PKIDir):
		if !l.hintBeside(name) {
			return
		}
	case state.ValidMinionID(name) != nil:
		return // temporary files, caches: no keys
	default:
		l.noteHint(name)
	}
	l.wakeIn(l.cfg.Timing.Debounce)
}

// hintBeside is about pki_dir itself: one of the directories, or a file of the store.
func (l *loop) hintBeside(name string) bool {
	switch {
	case slices.Contains(placeNames[:], name):
		l.scanDue = true
	case l.store != nil && strings.HasPrefix(name, mmapkeys.Prefix) && !strings.HasSuffix(name, ".lock"):
		l.store.due = true
	default:
		return false
	}
	return true
}

func (l *loop) watchFailed(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		l.metrics.failures.WithLabelValues("watch").Inc()
	}
	l.log.Warn("scanning all keys: changes may have been missed", "err", err)
	l.scanDue = true
	l.wakeIn(l.cfg.Timing.Debounce)
}

// noteBatch hands the outcome of a batch to the machine.
func (l *loop) noteBatch(b batch) {
	l.proposing = false
	now := time.Now()
	for i, p := range b.proposals {
		l.markDirty(p.subject.id)
		if b.err != nil || i >= len(b.results) {
			l.m.noteFailed(now, p)
			l.metrics.edits.WithLabelValues("unanswered").Inc()
			continue
		}
		r := b.results[i]
		l.m.noteAnswered(now, p, r)
		l.logAnswer(p, r, i < maxLogged)
	}
	if len(b.results) > maxLogged {
		l.log.Info("many key changes made on this node are decided", "count", len(b.results))
	}
	if b.err != nil {
		l.log.Warn("key changes wait for consensus", "count", len(b.proposals), "err", b.err)
	}
}

func (l *loop) logAnswer(p proposal, r state.Result, aloud bool) {
	outcome := string(r.Code)
	if r.Code == state.OK {
		outcome = "ok"
	}
	l.metrics.edits.WithLabelValues(outcome).Inc()
	args := []any{"minion", p.subject.id, "state", stateName(p.subject, p.want), "index", r.Rev}
	if r.Code == state.OK {
		if aloud {
			l.log.Info("key change made on this node is in force", args...)
		}
		return
	}
	l.log.Warn("key change made on this node was refused", append(args, "reason", outcome, "err", r.Message)...)
}

func stateName(s subject, e entry) string {
	switch {
	case e == entry{}:
		return "deleted"
	case s.denied:
		return "denied"
	}
	return string(e.State)
}

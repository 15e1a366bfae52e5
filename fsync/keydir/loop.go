package keydir

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	synced   *progress
	proposer *proposer

	m      *machine // nil until consensus was looked at for the first time
	disk   *disk
	writer *writer
	store  *store // nil: the master has its keys in the directories only
	watch  *watcher
	marker marker
	base   string           // where the base is kept
	tell   func(rev uint64) // tells the nodes that share the directories; nil: there are none

	started   bool // the view is good to work with
	stored    *base
	dirty     map[string]struct{} // ids to look at
	scanDue   bool                // all is to be looked at
	viewed    uint64              // revision of the view that was dealt with
	denied    uint64              // and of its denied keys
	proposing bool
	extras    []ready // denied keys to be recorded that find no room in a batch

	lastSynced *lastSynced          // what the store held when it was last in step with the files
	strange    [2]bool              // its banks are not those lastSynced is about
	lacking    map[subject]struct{} // what it has no room for
	storeFrom  time.Time            // when workers of the master see what was written to it last
	seen       []seenLater
	stepLogged time.Time

	storeTold *atomic.Pointer[StoreStatus]
	settled   *atomic.Bool // see Dir.Settled
	heldKeys  *atomic.Pointer[[]string]
	forget    <-chan struct{} // see Dir.Forget

	ctx      context.Context // of runLoop
	due      time.Time       // next round
	scanned  time.Time       // end of the last look at everything
	scanTook time.Duration
	saved    time.Time
	blind    bool // no watcher: look often
	held     string
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
		cfg: d.cfg, log: d.cfg.Logger, metrics: d.metrics, synced: &d.synced, stored: stored,
		proposer: newProposer(d.cfg.Log, d.cfg.Timing.Propose),
		disk:     dk,
		writer: &writer{
			disk: dk, mode: d.cfg.Mode,
			overruled: &overruledFiles{dir: filepath.Join(d.cfg.StateDir, "keys-aside")},
			work:      &d.work,
		},
		marker: newMarker(d.cfg.PKIDir, name), base: based,
		store: st, storeTold: &d.store, settled: &d.settled, heldKeys: &d.heldKeys, forget: d.forget,
		lacking: map[subject]struct{}{},
		dirty:   map[string]struct{}{},
		scanDue: true,
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
		case <-l.forget:
			if l.m != nil {
				l.m.forgetHeld()
			}
			l.wakeIn(0)
		case b := <-l.proposer.out:
			l.noteBatch(b)
			l.wakeIn(0)
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(l.due) {
			l.due = now.Add(l.rescanIn())
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

func (l *loop) rescanIn() time.Duration {
	if l.blind {
		return max(time.Second, 20*l.scanTook)
	}
	return l.cfg.Timing.Rescan
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
	case len(l.dirty) >= maxDirty:
		l.scanDue = true
	default:
		l.dirty[name] = struct{}{}
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
	l.log.Warn("looking at all keys: changes may have been missed", "err", err)
	l.scanDue = true
	l.wakeIn(l.cfg.Timing.Debounce)
}

// noteBatch hands the outcome of a batch to the machine.
func (l *loop) noteBatch(b batch) {
	l.proposing = false
	now := time.Now()
	for i, p := range b.proposals {
		l.dirty[p.subject.id] = struct{}{}
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

package keydir

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"saltclusterd/consensus/state"
)

// runRound looks, decides and acts once.
func (l *loop) runRound(now time.Time) {
	l.reportVisible(now)
	view := l.cfg.Log.View()
	if !l.startBase(now, view) {
		l.wakeIn(l.cfg.Timing.Retry)
		return
	}
	ids, everything, err := l.observeDisk(now, view)
	if err == nil && l.saved.IsZero() {
		err = l.saveBase(now, true) // what this node was at first contact must not be forgotten once it has proposed
	}
	if err != nil {
		l.stopUnreadable(err)
		return
	}
	l.held = ""
	clear(l.dirty)
	var waiting map[string]bool
	if l.store != nil {
		waiting = l.syncStore(view, ids)
		ids = slices.DeleteFunc(ids, func(id string) bool { return waiting[id] })
		if everything {
			l.settleStore(waiting)
		}
	}
	l.m.clockAhead = now.Sub(l.cfg.Now())
	p := l.m.planKeys(now, view, l.disk.foundFor, ids)
	l.publishHeld()
	for _, id := range p.open {
		l.markDirty(id)
	}
	l.wakeAt(p.next)
	batch := l.buildBatch(p.proposals) // before they are written over
	done := l.writeKeys(p.writes)
	l.sendBatch(now, batch)
	if l.store != nil && len(p.writes) > 0 {
		done = l.storeWritten(view, p.writes) && done
	}
	if done && len(waiting) == 0 {
		l.viewed, l.denied = view.Rev(), view.DeniedRev()
		l.m.advanceTo(view.Rev())
		if everything && len(l.dirty) == 0 {
			l.m.endStaleness(view)
		}
		l.noteWritten(time.Now(), view.Rev())
	}
	l.settled.Store(l.m.base.Stale == fresh)
	_ = l.saveBase(now, false) // logged
	l.tellStore(nil)
}

// stopUnreadable stops everything while the directories cannot be read: nothing that is missing then has been deleted.
func (l *loop) stopUnreadable(err error) {
	l.metrics.failures.WithLabelValues("look").Inc()
	if l.held != err.Error() {
		l.held = err.Error()
		l.log.Error("minion keys are not mirrored", "err", err)
	}
	l.scanDue = true
	l.wakeIn(l.cfg.Timing.Retry)
	l.tellStore(err)
}

// observeDisk brings what is known of the disk up to date and says what is to be decided about.
func (l *loop) observeDisk(now time.Time, view state.View) (ids []string, everything bool, err error) {
	due, later := l.isScanDue(now, l.cfg.Timing.Rescan)
	l.wakeAt(later)
	if due || l.disk.dirsReplaced() {
		if err := l.scanDisk(); err != nil {
			return nil, false, err
		}
		everything = true
	}
	if err := l.lookStore(now); err != nil {
		return nil, false, fmt.Errorf("read the master's key store: %w", err)
	}
	if l.strangeStore() || l.m.base.Stale != fresh || l.viewed == 0 || l.viewed < view.TombstoneFloor() {
		everything = true
	}
	if !everything {
		ids = l.changedIDs(view)
		l.disk.refreshKeys(ids)
		return ids, false, nil
	}
	l.disk.refreshKeys(slices.Collect(maps.Keys(l.dirty)))
	return l.allIDs(view), true, nil
}

func (l *loop) scanDisk() error {
	began := time.Now()
	root, err := os.Stat(l.cfg.PKIDir)
	if err != nil {
		return fmt.Errorf("inspect pki_dir: %w", err)
	}
	if err := l.checkMarker(); err != nil {
		return err
	}
	l.checkDirs()
	if err := l.makeDirs(root); err != nil {
		return err
	}
	if err := l.watch.watchDirs(l.disk, l.store != nil); err != nil {
		if !l.blind {
			l.log.Warn("key directories are polled", "err", err)
		}
		l.blind = true
	} else {
		l.blind = false
	}
	if err := l.disk.scanAll(); err != nil {
		return err
	}
	if err := l.checkMarker(); err != nil { // again: the directories may have been replaced while we looked
		return err
	}
	l.checkDirs()
	l.knowDirs()
	l.noteScan(began)
	l.metrics.seconds.Observe(l.scanTook.Seconds())
	for p := range places {
		l.metrics.keys.WithLabelValues(p.String()).Set(float64(len(l.disk.files[p])))
	}
	return nil
}

// allIDs lists every id that disk, base or consensus know.
func (l *loop) allIDs(view state.View) []string {
	ids := maps.Clone(l.dirty)
	for p := range places {
		for id := range l.disk.files[p] {
			ids[id] = struct{}{}
		}
	}
	for id := range l.m.base.Keys {
		ids[id] = struct{}{}
	}
	if l.store != nil {
		for s := range l.store.held {
			ids[s.id] = struct{}{}
		}
		for s := range l.lastSynced.is {
			ids[s.id] = struct{}{}
		}
	}
	view.Keys(func(k state.Key) bool {
		ids[k.ID] = struct{}{}
		return true
	})
	l.addDenied(ids, view)
	return slices.Collect(maps.Keys(ids))
}

// changedIDs lists the ids about which a hint came or consensus decided since the last round.
func (l *loop) changedIDs(view state.View) []string {
	ids := maps.Clone(l.dirty)
	for _, c := range view.KeysSince(l.viewed) {
		ids[c.ID] = struct{}{}
	}
	if view.DeniedRev() != l.denied {
		l.addDenied(ids, view)
	}
	return slices.Collect(maps.Keys(ids))
}

func (l *loop) addDenied(ids map[string]struct{}, view state.View) {
	for id := range l.m.base.Denied {
		ids[id] = struct{}{}
	}
	for _, k := range view.DeniedKeys() {
		ids[k.ID] = struct{}{}
	}
}

// writeKeys carries decisions out. It returns false when any could not be, so that they are not on disk yet.
func (l *loop) writeKeys(ws []writing) bool {
	done := true
	if len(ws) > maxLogged {
		l.log.Info("many keys are written", "count", len(ws))
	}
	for i, err := range l.writer.applyWritings(ws) {
		w := ws[i]
		args := []any{"minion", w.subject.id, "state", stateName(w.subject, w.want), "index", w.rev}
		if err == nil {
			l.m.noteWritten(w)
			l.metrics.written.Inc()
			if w.overruled {
				l.metrics.overruled.Inc()
				l.log.Warn("local key file overruled by the cluster, a copy is kept", append(args, "reason", w.why)...)
			} else if i < maxLogged {
				l.log.Info("key written", args...)
			}
			continue
		}
		done = false
		l.markDirty(w.subject.id)
		if errors.Is(err, errChanged) {
			l.wakeIn(l.cfg.Timing.Debounce)
			continue
		}
		l.wakeIn(l.cfg.Timing.Retry)
		l.metrics.failures.WithLabelValues("write").Inc()
		l.log.Error("key not written", append(args, "err", err)...)
	}
	return done
}

// ready is a proposal with its command.
type ready struct {
	proposal proposal
	command  state.Command
}

// maxExtras bounds how many denied keys wait to be recorded.
const maxExtras = 1000

// proposalState is what is on its way to consensus.
type proposalState struct {
	proposer  *proposer
	proposing bool
	extras    []ready // denied keys to be recorded that find no room in a batch
}

// buildBatch turns proposals into commands as far as one batch goes; the others come up again in a later round.
func (l *loop) buildBatch(ps []proposal) []ready {
	slices.SortStableFunc(ps, func(a, b proposal) int { return boolInt(b.extra) - boolInt(a.extra) })
	batch, size := l.extras, 0
	l.extras = nil
	for _, p := range ps {
		full := len(batch) >= maxBatch || size >= maxBatchBytes || l.proposing
		if full && (!p.extra || len(batch) >= maxExtras) {
			break
		}
		text, err := "", error(nil)
		if p.want != (entry{}) {
			text, err = l.disk.readEntry(p.subjectOnDisk(), p.from)
		}
		if err != nil {
			l.markDirty(p.subject.id)
			l.wakeIn(l.cfg.Timing.Debounce)
			continue
		}
		size += len(text) + 256
		batch = append(batch, ready{p, l.m.buildCommand(l.cfg.Now(), p, text)})
	}
	return batch
}

// subjectOnDisk is where the text of a proposal lies: a key that lost against another one is not yet a denied one.
func (p proposal) subjectOnDisk() subject {
	if p.extra {
		return subject{id: p.subject.id}
	}
	return p.subject
}

func (l *loop) sendBatch(now time.Time, rs []ready) {
	if len(rs) == 0 {
		return
	}
	if l.proposing {
		l.extras = rs
		return
	}
	var b batch
	for _, r := range rs {
		b.proposals = append(b.proposals, r.proposal)
		b.commands = append(b.commands, r.command)
	}
	l.m.noteSent(now, b.proposals)
	l.proposing = true
	l.proposer.in <- b // never blocks: the last one has come back
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

package keydir

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"saltclusterd/consensus/state"
)

// startBase decides, once, whether the stored base can be built on. It returns false while consensus is not there yet.
func (l *loop) startBase(now time.Time, view state.View) bool {
	if l.m != nil {
		return true
	}
	if !view.Initialized() || l.cfg.Current != nil && !l.cfg.Current() {
		return false
	}
	b, uuid := l.stored, view.Identity().UUID
	switch {
	case b == nil, b.UUID != uuid:
		b = newBase(l.initialStaleness(view))
		l.log.Info("first contact of this key directory with the cluster", "state", string(b.Stale))
	case view.Rev() >= b.highestRev():
	case l.cfg.Current == nil:
		return false // the log is still being read; what it says now is older than what is on disk
	default:
		l.log.Warn("consensus is older than this node's keys: consensus decides about all of them",
			"index", view.Rev(), "base", b.highestRev())
		b = newBase(joining)
	}
	b.UUID = uuid
	if b.Keys == nil {
		b.Keys = map[string]based{}
	}
	l.lastSynced = lastSyncedOf(b, b.Store)
	l.m = newMachine(l.cfg.Node, l.cfg.Timing, b)
	l.m.losses.percent, l.m.losses.all, l.m.losses.changed = l.cfg.MaxLosses, l.cfg.HoldAll, true
	l.m.dirty = true
	return true
}

// initialStaleness says what a node without a base is: the founder of a cluster that has no keys yet, or one that
// joins.
func (l *loop) initialStaleness(view state.View) staleness {
	empty := view.KeyCount() == 0 && view.Tombstones() == 0 && view.TombstoneFloor() == 0
	if l.cfg.Founder && empty {
		return found
	}
	return joining
}

// checkMarker distrusts directories that are not those of the base.
func (l *loop) checkMarker() error {
	if l.m.base.Stale != fresh || l.m.base.Stamp == "" {
		return nil
	}
	fits, err := l.marker.matchesBase(l.m.base)
	if err != nil {
		return err
	}
	if !fits {
		l.log.Warn("the key directories are not those of the last time: consensus decides about all keys")
		l.m.markStale()
	}
	return nil
}

// makeDirs makes directories that are missing.
func (l *loop) makeDirs(root fs.FileInfo) error {
	for p := range places {
		if _, err := os.Lstat(l.disk.dirPath(p)); !os.IsNotExist(err) {
			continue
		}
		if err := os.Mkdir(l.disk.dirPath(p), root.Mode().Perm()|0o700); err != nil {
			return fmt.Errorf("make directory %s: %w", p, err)
		}
		if err := l.ownLike(p, root); err != nil {
			return fmt.Errorf("make directory %s: %w", p, err)
		}
	}
	return nil
}

// ownLike gives a new directory to the owner of pki_dir, who is the user of the master, as far as we may.
func (l *loop) ownLike(p place, root fs.FileInfo) error {
	st, ok := root.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(l.disk.dirPath(p), int(st.Uid), int(st.Gid))
}

func (l *loop) basedIn(p place) bool {
	if p == deniedDir {
		return len(l.m.base.Denied) > 0
	}
	for _, v := range l.m.base.Keys {
		if v.State == p.keyState() {
			return true
		}
	}
	return false
}

// saveBase stores the base and then says so in the marker. In between a crash leaves the marker of before, which the
// base still knows.
func (l *loop) saveBase(now time.Time, force bool) error {
	if l.m == nil || !l.m.dirty {
		return nil
	}
	if at := l.saved.Add(saveEvery); !force && now.Before(at) {
		l.wakeAt(at)
		return nil
	}
	l.saved = now
	b := l.m.base
	if stamp, err := l.marker.readStamp(); err == nil && (stamp == b.Stamp || b.Stamp == "") {
		b.Prev, b.Stamp = b.Stamp, newStamp()
	}
	if b.Store = nil; l.store != nil {
		b.Store = l.lastSynced.storeFile(b)
	}
	err := saveBase(l.dir, b)
	if err == nil {
		err = l.marker.writeStamp(b.Stamp)
	}
	if err != nil {
		l.metrics.failures.WithLabelValues("save").Inc()
		l.log.Error("state of the key directories not stored", "err", err)
		return err
	}
	l.m.dirty = false
	return nil
}

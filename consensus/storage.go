package consensus

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"saltclusterd/durable"
)

const (
	logFile       = "raft.db"
	snapshotDir   = "snapshots"
	formatFile    = "format"
	formatV1      = "saltclusterd consensus 1\n"
	logCacheSize  = 512
	keepSnapshots = 3
	dirMode       = 0o700
	fileMode      = 0o600
)

// watchedLog remembers of the entries, and of terms and votes, why the newest could not be stored, and since when some
// are being stored.
type watchedLog struct {
	*raftboltdb.BoltStore
	storing        func() // a test's, before entries are stored; nil: none
	entries, votes diskWrite
	limit          time.Duration // see hangs
}

// diskWrite is what is known of one kind of write. Its outcome says nothing of the other kind: a heartbeat with a new
// term is handled beside raft's main loop, which may be storing entries.
type diskWrite struct {
	mu     sync.Mutex                // one at a time, as on the disk, so that each is measured
	began  atomic.Pointer[time.Time] // nil: nothing is being stored
	failed atomic.Pointer[error]     // nil: the newest was stored
}

// watch stores something and notes the outcome.
func (w *diskWrite) watch(store func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.began.Store(&now)
	defer w.began.Store(nil)
	err := store()
	if err != nil {
		w.failed.Store(&err)
	} else {
		w.failed.Store(nil)
	}
	return err
}

// lasts is for how long something is being stored now; 0: nothing is.
func (w *diskWrite) lasts() time.Duration {
	began := w.began.Load()
	if began == nil {
		return 0
	}
	return time.Since(*began)
}

// StoreLog implements raft.LogStore.
func (w *watchedLog) StoreLog(l *raft.Log) error { return w.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (w *watchedLog) StoreLogs(l []*raft.Log) error {
	return w.entries.watch(func() error {
		if w.storing != nil {
			w.storing()
		}
		return w.BoltStore.StoreLogs(l)
	})
}

// hangs tells whether something has been on its way to the disk for too long.
func (w *watchedLog) hangs() bool { return w.storingFor() > w.limit }

// storingFor is for how long something is being stored now; 0: nothing is.
func (w *watchedLog) storingFor() time.Duration { return max(w.entries.lasts(), w.votes.lasts()) }

// failure is why the newest entries, or a term or vote, could not be stored; nil: they were.
func (w *watchedLog) failure() error {
	if err := cmp.Or(w.entries.failed.Load(), w.votes.failed.Load()); err != nil {
		return *err
	}
	return nil
}

// LogError returns why the newest entries of the log, or a term or vote, could not be stored; nil when they were.
func (n *Node) LogError() error {
	if n.raft.Load() == nil {
		return nil
	}
	if n.diskHangs() {
		return fmt.Errorf("the disk has not answered for %s", n.store.watched.storingFor().Round(time.Second))
	}
	return n.store.watched.failure()
}

// storage is the log, the votes and the snapshots of one node on disk.
type storage struct {
	bolt    *raftboltdb.BoltStore
	watched *watchedLog
	logs    raft.LogStore
	snaps   raft.SnapshotStore
}

func openStorage(dir string, lock time.Duration, logger hclog.Logger) (_ *storage, err error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := restrictModes(dir); err != nil {
		return nil, err
	}
	if err := checkFormat(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, logFile)
	bolt, err := openLog(path, lock)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, bolt.Close())
		}
	}()
	watched := &watchedLog{BoltStore: bolt}
	logs, err := raft.NewLogCache(logCacheSize, watched)
	if err != nil {
		return nil, fmt.Errorf("log cache: %w", err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, logger)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	s := &storage{bolt: bolt, watched: watched, logs: logs,
		snaps: privateSnapshots{snaps, filepath.Join(dir, snapshotDir)}}
	return s, restrictModes(dir)
}

func (s *storage) close() error {
	if err := s.bolt.Close(); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

// checkFormat names the layout on disk, so that a later version knows what it
// finds, and this one refuses what it cannot read.
func checkFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := durable.WriteFile(path, []byte(formatV1), fileMode); err != nil {
			return fmt.Errorf("write format: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read format: %w", err)
	case string(b) != formatV1:
		return fmt.Errorf("%s has a format that this version does not know: upgrade saltclusterd", path)
	}
	return nil
}

// restrictModes takes the rights of group and others away from dir and all in it.
func restrictModes(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a snapshot reaped meanwhile
		}
		if err != nil {
			return err
		}
		mode := fs.FileMode(fileMode)
		switch {
		case d.IsDir():
			mode = dirMode
		case !d.Type().IsRegular():
			return nil
		}
		if err := os.Chmod(path, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restrict rights: %w", err)
	}
	return nil
}

// privateSnapshots makes snapshots 0600. The library creates them with the
// umask of the process; until they are complete the 0700 directory around them
// keeps others out.
type privateSnapshots struct {
	raft.SnapshotStore
	dir string
}

func (s privateSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64,
	t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		return nil, err
	}
	return privateSink{sink, s.dir}, nil
}

type privateSink struct {
	raft.SnapshotSink
	dir string
}

func (s privateSink) Close() error {
	return errors.Join(s.SnapshotSink.Close(), restrictModes(s.dir))
}

package keydir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"saltclusterd/backoff"
)

// Shared is how nodes share directories: one of them at a time, the keeper, does what a Dir does for directories of its
// own, with the base and the marker on the share, so that the next keeper resumes where it has stopped. The others
// follow: they read from the lock's file how far it is. A node that wrote what consensus said a moment ago would undo
// what another one has written since, and all of them would take that for an edit: a deleted key would be back.
type Shared struct {
	// Latest returns when this node's view is as new as the cluster's when it was called. A node without a majority cannot
	// be the keeper.
	Latest func(ctx context.Context) error
	// Timeout with Latest; zero: 3 s.
	Timeout time.Duration
}

const (
	// lockFile is never removed: the lock of a file that is gone does not exclude other nodes.
	lockFile = ".saltclusterd-keys-lock"
	// sharedBase is the directory of the base that keepers hand to each other.
	sharedBase = ".saltclusterd-keybase"
	// sharedMarker stands for the node in the name of their marker.
	sharedMarker = "_shared"

	defaultTimeout = 3 * time.Second
	followEvery    = 100 * time.Millisecond
	latestEvery    = 2 * time.Second
	maxLockText    = 256
	// sharedRescan stands for the hints that do not come: what is done on another host no watch tells of.
	sharedRescan = 3 * time.Second
)

// What ends a keeper's turn.
var (
	errNotLatest = errors.New("the latest key decisions cannot be asked for")
	errOtherLock = errors.New("another file system is mounted there now")
)

// takeTurns follows and keeps until ctx ends.
func (d *Dir) takeTurns(ctx context.Context) error {
	for {
		lock, err := d.awaitLock(ctx)
		if err != nil {
			return err
		}
		d.cfg.Logger.Info("this node manages the shared key directories")
		err = d.runKeeper(ctx, lock)
		_ = lock.Close()      // unlocks
		d.heldKeys.Store(nil) // the next keeper lists them
		if ctx.Err() != nil {
			return err
		}
		d.cfg.Logger.Warn("another node takes over the shared key directories", "err", err)
	}
}

// awaitLock waits for the lock while the keeper works.
func (d *Dir) awaitLock(ctx context.Context) (*os.File, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	complained := ""
	for {
		lock, err := d.tryLock(ctx)
		if lock != nil {
			return lock, nil
		}
		if err != nil && err.Error() != complained && ctx.Err() == nil {
			complained = err.Error()
			d.cfg.Logger.Error("shared key directories", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// tryLock takes the lock if it is free, else it reads how far its holder is.
func (d *Dir) tryLock(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(d.cfg.PKIDir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the key directories: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		if err = d.awaitLatest(ctx); err == nil {
			return f, nil
		}
	} else if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		err = nil
		if text, rerr := io.ReadAll(io.LimitReader(f, maxLockText)); rerr == nil {
			d.synced.setRev(d.keeperRev(string(text)))
		}
	} else {
		err = fmt.Errorf("lock the key directories: %w", err)
	}
	_ = f.Close()
	return nil, err
}

func (d *Dir) awaitLatest(ctx context.Context) error {
	timeout := d.cfg.Shared.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := d.cfg.Shared.Latest(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotLatest, err)
	}
	return nil
}

// runKeeper mirrors the keys until ctx ends or this node is cut off.
func (d *Dir) runKeeper(ctx context.Context, lock *os.File) error {
	l, err := d.newLoop()
	if err != nil {
		return err
	}
	l.tell = func(rev uint64) {
		_, _ = lock.WriteAt([]byte(lockText(d.cfg.Log.View().Identity().UUID, rev)), 0) // told again with the next
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.runLoop(ctx) })
	g.Go(func() error { return l.proposer.runBatches(ctx) })
	g.Go(func() error {
		for {
			if !backoff.Sleep(ctx, latestEvery) {
				return context.Cause(ctx)
			}
			if err := d.awaitLatest(ctx); err != nil {
				return err
			}
			if !d.stillLocked(lock) {
				return errOtherLock
			}
		}
	})
	return g.Wait()
}

// stillLocked says whether the lock this node holds is the one that others see. It is not when the share was mounted
// anew, or something else was for a while.
func (d *Dir) stillLocked(lock *os.File) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	seen, err := os.Lstat(filepath.Join(d.cfg.PKIDir, lockFile))
	return err == nil && os.SameFile(held, seen)
}

// lockText is what followers read: of which cluster, how far. Within one cluster it always has the same length, because
// it is written over.
func lockText(uuid string, rev uint64) string { return fmt.Sprintf("%s %020d\n", uuid, rev) }

// keeperRev reads how far the keeper is; 0 when it does not say, or not for this cluster.
func (d *Dir) keeperRev(text string) uint64 {
	return parseLockText(text, d.cfg.Log.View().Identity().UUID)
}

func parseLockText(text, ours string) uint64 {
	uuid, rest, ok := strings.Cut(text, " ")
	rest, _, line := strings.Cut(rest, "\n") // what follows is of a longer text before
	if !ok || !line || uuid != ours {
		return 0
	}
	rev, err := strconv.ParseUint(rest, 10, 64)
	if err != nil {
		return 0
	}
	return rev
}

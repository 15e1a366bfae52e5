package mmapkeys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockEvery = 5 * time.Millisecond
	// lockTries bounds how often a lock file that was replaced is opened anew.
	lockTries = 100
)

// takeLock takes the lock as Salt does (salt/utils/mmap_cache.py:MmapCache._lock), shared or exclusive. Salt removes
// the file with a bank that it wipes; a lock on a file that is gone excludes no other process, and is taken anew.
func (b *Bank) takeLock(ctx context.Context, how int) (*os.File, error) {
	for range lockTries {
		f, err := b.openLock()
		if err != nil {
			return nil, err
		}
		if err := waitFlock(ctx, f, how); err != nil {
			_ = f.Close()
			return nil, err
		}
		if b.sameFile(f) {
			return f, nil
		}
		_ = f.Close()
	}
	return nil, ErrLocked
}

func (b *Bank) openLock() (*os.File, error) {
	const flags = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(b.path+".lock", flags, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return f, wrapError("lock", err)
	}
	if f, err = os.OpenFile(b.path+".lock", flags|os.O_CREATE, fileMode); err != nil {
		return nil, wrapError("lock", err)
	}
	if err := b.chownFile(f); err != nil {
		_ = f.Close()
		return nil, wrapError("lock", err)
	}
	return f, nil
}

func (b *Bank) sameFile(f *os.File) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(b.path + ".lock")
	return err == nil && os.SameFile(here, there)
}

func waitFlock(ctx context.Context, f *os.File, how int) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return wrapError("lock", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s key store: %w", what, err)
}

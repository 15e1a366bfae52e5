package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// openLog opens the log and reads all of it, so that a damaged file is found at the start and not at the next election.
func openLog(path string, lock time.Duration) (*raftboltdb.BoltStore, error) {
	if err := walkLog(path, lock); err != nil {
		return nil, openError(path, err)
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path:                    path,
		BoltOptions:             &bbolt.Options{Timeout: lock, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		MsgpackUseNewTimeFormat: true,
	})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := readAll(bolt); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w: %w", path, ErrDamaged, err), bolt.Close())
	}
	return bolt, nil
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("read %s: %w", path, err)
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("open %s: another process uses it: is a second saltclusterd running?", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err,
		bolterrors.ErrVersionMismatch):
		return fmt.Errorf("open %s: %w: %w", path, ErrDamaged, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// minLog is the library's two meta pages.
const minLog = 8 << 10

// walkLog reads every page of the file before the library opens it for writing: it does that in a goroutine of its own,
// where a damaged page ends the process. What such a page does here (a panic, or memory behind the end of the file) is
// an error.
func walkLog(path string, lock time.Duration) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() < minLog {
		return fmt.Errorf("%w: %d bytes", ErrDamaged, info.Size())
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("%w: %v", ErrDamaged, p))
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
}

// readAll decodes every entry.
func readAll(store *raftboltdb.BoltStore) error {
	first, err1 := store.FirstIndex()
	last, err2 := store.LastIndex()
	if err := errors.Join(err1, err2); err != nil || last == 0 {
		return err
	}
	var l raft.Log
	for i := first; i <= last; i++ {
		if err := store.GetLog(i, &l); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}

package unshare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"saltclusterd/durable"
)

// Exchange puts the copy of a tree in the place of the link to it, at once: whoever opens a path sees the one or the
// other. The link is kept where the copy was. Nothing happens when it has been done.
func Exchange(t Tree) error { return swapTree(t, fs.ModeSymlink, fs.ModeDir) }

// Restore undoes Exchange.
func Restore(t Tree) error { return swapTree(t, fs.ModeDir, fs.ModeSymlink) }

// swapTree exchanges t.Link and t.To when they are of the types named.
func swapTree(t Tree, link, to fs.FileMode) error {
	a, errA := os.Lstat(t.Link)
	b, errB := os.Lstat(t.To)
	if err := errors.Join(errA, errB); err != nil {
		if errors.Is(errB, fs.ErrNotExist) && errA == nil && a.Mode().Type() == to {
			return nil // done, and cleaned up
		}
		return fmt.Errorf("exchange %s and its copy: %w", t.Link, err)
	}
	switch {
	case a.Mode().Type() == to && b.Mode().Type() == link:
		return nil
	case a.Mode().Type() != link || b.Mode().Type() != to:
		return fmt.Errorf("exchange %s and its copy: %s and %s have changed", t.Link, t.Link, t.To)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, t.Link, unix.AT_FDCWD, t.To, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %s and its copy: %w", t.Link, err)
	}
	return durable.SyncFS(filepath.Dir(t.Link))
}

// Forget removes the link that Exchange has kept.
func Forget(t Tree) error {
	info, err := os.Lstat(t.To)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() != fs.ModeSymlink {
		return nil
	}
	if err == nil {
		err = os.Remove(t.To)
	}
	if err != nil {
		return fmt.Errorf("remove the old link: %w", err)
	}
	return nil
}

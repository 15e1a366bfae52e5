package unshare

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"saltclusterd/paths"
)

// Size is how much a tree is.
type Size struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Measure counts what is in a tree.
func Measure(ctx context.Context, dir string) (s Size, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !e.Type().IsRegular() {
			return nil // it went, or cannot be read: the copying will say so
		}
		if info, err := e.Info(); err == nil {
			s.Files++
			s.Bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("measure %s: %w", dir, err)
	}
	return s, nil
}

// reserve is what has to stay free.
const reserve = 64 << 20

// Room says whether a directory's file system has room for so much.
func Room(dir string, need Size) error {
	dir = paths.Existing(dir)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("room in %s: %w", dir, err)
	}
	free := int64(st.Bavail) * st.Bsize
	blocks := need.Bytes + int64(need.Files)*st.Bsize/2 // files end in the middle of a block
	switch {
	case free < blocks+reserve:
		return fmt.Errorf("%s has %d MiB free, %d MiB are needed", dir, free>>20, (blocks+reserve)>>20)
	case st.Files > 0 && st.Ffree < uint64(need.Files)+1000:
		return fmt.Errorf("%s has inodes for %d more files, %d are needed", dir, st.Ffree, need.Files)
	}
	return nil
}

// MayMake says whether this process may write to a directory, or make it where it does not exist.
func MayMake(dir string) bool { return unix.Access(paths.Existing(dir), unix.W_OK|unix.X_OK) == nil }

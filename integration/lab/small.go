package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Small is a file system of a host that is soon full, in memory. Only masters and saltclusterd of the host have it in
// their way.
type Small struct {
	Dir    string
	covers int
}

// smallBallast is what fills it; its name is not part of any root.
const smallBallast = ".saltcluster-ballast"

// MountSmall mounts an empty file system of so many MiB at a path below the host's directory, before anything runs in
// the lab.
func (h *Host) MountSmall(_ context.Context, path string, mebibytes int) (*Small, error) {
	if os.Geteuid() != 0 || h.ns == "" {
		return nil, fmt.Errorf("small file system of %s: %w", h.Name, ErrNoDisk)
	}
	if err := h.lab.shareDisks(); err != nil {
		return nil, err
	}
	s := &Small{Dir: filepath.Join(h.dir, path)}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("small file system of %s: %w", h.Name, err)
	}
	if err := unix.Mount("small", s.Dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", mebibytes)); err != nil {
		return nil, fmt.Errorf("small file system of %s: %w: %w", h.Name, ErrNoDisk, err)
	}
	h.small = append(h.small, s)
	return s, nil
}

// Fill leaves so many bytes free.
func (s *Small) Fill(but int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		return fmt.Errorf("fill %s: %w", s.Dir, err)
	}
	f, err := os.Create(filepath.Join(s.Dir, smallBallast))
	if err != nil {
		return fmt.Errorf("fill %s: %w", s.Dir, err)
	}
	if n := int64(st.Bavail)*st.Bsize - but; n > 0 {
		err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("fill %s: %w", s.Dir, err)
	}
	return nil
}

// Free undoes Fill.
func (s *Small) Free() error {
	if err := os.Remove(filepath.Join(s.Dir, smallBallast)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free %s: %w", s.Dir, err)
	}
	return nil
}

// Cover puts another file system, an empty one, in the place of this one, as when a disk is changed or not mounted;
// Uncover takes it away.
func (s *Small) Cover() error {
	if err := unix.Mount("cover", s.Dir, "tmpfs", 0, "size=512m,mode=755"); err != nil {
		return fmt.Errorf("cover %s: %w", s.Dir, err)
	}
	s.covers++
	return nil
}

// Uncover undoes Cover.
func (s *Small) Uncover() error {
	if s.covers == 0 {
		return nil
	}
	if err := unix.Unmount(s.Dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("uncover %s: %w", s.Dir, err)
	}
	s.covers--
	return nil
}

func (h *Host) dropSmall() error {
	var errs []error
	for _, s := range h.small {
		for s.covers > 0 {
			if err := s.Uncover(); err != nil {
				errs = append(errs, err)
				break
			}
		}
		errs = append(errs, unix.Unmount(s.Dir, unix.MNT_DETACH))
	}
	h.small = nil
	return errors.Join(errs...)
}

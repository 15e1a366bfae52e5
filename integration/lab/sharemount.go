package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoFUSE is returned where hosts cannot have mounts of their own of a share.
var ErrNoFUSE = errors.New("no file systems of our own (needs root, /dev/fuse and bin/sharefs)")

// fuseOptions: what the directory's permissions say holds, for whoever is there.
const fuseOptions = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"

// mountOwn lets a host reach the share at dir through a file system of its own, as the client of a network file system
// does.
func (s *Share) mountOwn(ctx context.Context, h *Host, dir string) error {
	bin := filepath.Join(h.lab.opts.Bin, "sharefs")
	if _, err := os.Stat(bin); err != nil {
		return fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	kernel := os.NewFile(uintptr(fd), "/dev/fuse")
	defer kernel.Close() // the file system ends with the process that has it now
	if err := unix.Mount("share", dir, "fuse.share", unix.MS_NOATIME, fmt.Sprintf(fuseOptions, fd)); err != nil {
		return fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	p := h.NewProcess(Spec{Name: "sharefs", Argv: []string{bin, s.Dir}, Stdin: kernel})
	p.Ready = func(context.Context) error {
		if !p.Logged("serving") {
			return errors.New("it does not serve yet")
		}
		return nil
	}
	if err := p.Start(ctx); err != nil {
		return errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
	}
	s.mounts[h] = p
	return p.WaitReady(ctx, 20*time.Second)
}

// HangOn makes the share hang for one host: whoever reads or writes there waits in the kernel until AnswerOn. Stay away
// from the host's share meanwhile.
func (s *Share) HangOn(h *Host) error {
	p := s.mounts[h]
	if p == nil {
		return fmt.Errorf("hang the share of %s: %w", h.Name, ErrNoFUSE)
	}
	return p.Pause()
}

// AnswerOn ends what HangOn began.
func (s *Share) AnswerOn(h *Host) error {
	if p := s.mounts[h]; p != nil {
		return p.Resume()
	}
	return nil
}

// MountCopy shows a host another file system in the place of the share, a copy of what is there now, until back is
// called.
func (s *Share) MountCopy(ctx context.Context, h *Host) (back func() error, err error) {
	if !s.mount {
		return nil, fmt.Errorf("another share for %s: %w", h.Name, ErrNeedsRoot)
	}
	other, dir := s.Dir+"."+h.Name, filepath.Join(h.dir, shareName)
	if err := tool(ctx, "cp", "-a", s.Dir, other); err != nil && !strings.Contains(err.Error(), "sockets") {
		return nil, fmt.Errorf("another share for %s: %w", h.Name, err)
	}
	if err := unix.Mount(other, dir, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("another share for %s: %w", h.Name, err)
	}
	return func() error { return unix.Unmount(dir, unix.MNT_DETACH) }, nil
}

// letGo frees the processes that wait for the share: a process that hangs in it cannot be killed.
func (s *Share) letGo() error {
	if s == nil {
		return nil
	}
	errs := []error{s.Answer()}
	for _, p := range s.mounts {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Share is a directory that hosts of the lab have mounted as share in their own.
type Share struct {
	Dir    string
	bound  []string // where the hosts have it
	mount  bool     // it is one
	disk   bool     // an ext4 file system of its own, which can be made to hang
	frozen bool
	own    bool               // each host has a file system of its own that leads there
	mounts map[*Host]*Process // which serves it
}

// shareName is the share's in a host's directory.
const shareName = "share"

// linux/fs.h
const (
	ioctlFreeze = 0xc0045877
	ioctlThaw   = 0xc0045878
)

// shareSize is the size of a share's disk: room for keys, jobs and roots.
const shareSize = 256 << 20

// NewShare makes a directory for all hosts: a file system of its own where one can be made, else a directory; without
// root, links take the place of mounts. With own each host reaches it through a file system of its own, where the
// kernel has FUSE.
func (l *Lab) NewShare(ctx context.Context, own bool) (*Share, error) {
	s := &Share{Dir: filepath.Join(l.dir, shareName), own: own, mounts: map[*Host]*Process{}}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the share: %w", err)
	}
	if os.Geteuid() != 0 || !l.Namespaces() {
		return s, nil
	}
	if err := l.shareDisks(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.share = s
	l.mu.Unlock()
	s.mount = true
	err := s.mountDisk(ctx, filepath.Join(l.dir, "share.img"))
	if errors.Is(err, ErrNoDisk) {
		l.Logf("the share is a directory: %v", err)
	} else if err != nil {
		return nil, fmt.Errorf("mount the share: %w", err)
	}
	return s, nil
}

func (s *Share) mountDisk(ctx context.Context, image string) error {
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(shareSize), f.Close()); err != nil {
		return err
	}
	if err := tool(ctx, "mkfs.ext4", "-q", "-m", "0", image); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	losetup, err := exec.LookPath("losetup")
	if err != nil {
		losetup = "/usr/sbin/losetup"
	}
	out, err := exec.CommandContext(ctx, losetup, "--find", "--show", image).Output()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	dev := strings.TrimSpace(string(out))
	if err := unix.Mount(dev, s.Dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return errors.Join(err, tool(ctx, "losetup", "-d", dev))
	}
	s.disk = true
	return tool(ctx, "losetup", "-d", dev) // it goes with the last mount
}

// Hang makes the share hang: whoever writes there waits in the kernel until Answer. ErrNoDisk where that cannot be
// done.
func (s *Share) Hang() error {
	if !s.disk {
		return fmt.Errorf("hang the share: %w", ErrNoDisk)
	}
	if err := s.ioctl(ioctlFreeze); err != nil {
		return fmt.Errorf("hang the share: %w", err)
	}
	s.frozen = true
	return nil
}

// Answer ends what Hang began.
func (s *Share) Answer() error {
	if !s.frozen {
		return nil
	}
	if err := s.ioctl(ioctlThaw); err != nil {
		return fmt.Errorf("let the share answer: %w", err)
	}
	s.frozen = false
	return nil
}

func (s *Share) ioctl(what uint) error {
	fd, err := unix.Open(s.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.IoctlSetInt(fd, what, 0)
}

// Gone takes the share away from all hosts, and fails when anybody still uses it.
func (s *Share) Gone() error {
	if !s.mount {
		return os.Rename(s.Dir, s.Dir+".gone")
	}
	unmount := func(dirs ...string) error {
		for _, dir := range dirs {
			if err := unix.Unmount(dir, 0); err != nil {
				return fmt.Errorf("unmount %s: %w", dir, err)
			}
		}
		return nil
	}
	if err := unmount(s.bound...); err != nil {
		return err
	}
	for _, p := range s.mounts {
		<-p.Done() // it has nothing to serve any more
	}
	if s.disk {
		if err := unmount(s.Dir); err != nil {
			return err
		}
	}
	s.bound, s.disk = nil, false
	return nil
}

func (s *Share) close() error {
	if s == nil {
		return nil
	}
	errs := []error{s.Answer()}
	for _, dir := range s.bound {
		errs = append(errs, unix.Unmount(dir, unix.MNT_DETACH))
	}
	if s.disk {
		errs = append(errs, unix.Unmount(s.Dir, unix.MNT_DETACH))
	}
	return errors.Join(errs...)
}

// bind lets a host have the share. Salt puts its root_dir before every path that is not below it, so that is where it
// goes.
func (s *Share) bind(ctx context.Context, h *Host) (dir string, err error) {
	dir = filepath.Join(h.dir, shareName)
	if !s.mount {
		return dir, os.Symlink(s.Dir, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	err = ErrNoFUSE
	if s.own {
		if err = s.mountOwn(ctx, h, dir); errors.Is(err, ErrNoFUSE) {
			h.lab.Logf("the share of %s cannot hang alone: %v", h.Name, err)
		}
	}
	if errors.Is(err, ErrNoFUSE) {
		err = bindApart(s.Dir, dir)
	}
	if err != nil {
		return "", err
	}
	s.bound = append(s.bound, dir)
	return dir, nil
}

// bindApart shows a directory at another one too. A later mount over that one (MountCopy) appears there for
// every process, but not at the other places where the directory is shown: those of one peer group have their mounts
// together.
func bindApart(dir, at string) error {
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	for _, how := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} { // out of dir's group, into one of its own
		if err := unix.Mount("", at, "", how, ""); err != nil {
			return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH))
		}
	}
	return nil
}

// give puts a master's keys, roots and jobs on the share. What a master keeps for itself alone (sockets, session keys,
// the key of its command line tools) stays in a cachedir of its own, and so does what each version lays out in another
// way.
func (s *Share) give(ctx context.Context, m *Master) (Settings, error) {
	dir, err := s.bind(ctx, m.Host())
	if err != nil {
		return nil, fmt.Errorf("give %s the share: %w", m.Host().Name, err)
	}
	m.pki = filepath.Join(dir, "pki")
	jobs := filepath.Join(dir, "jobs")
	for _, dir := range []string{m.pki, jobs, m.CacheDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("give %s the share: %w", m.Host().Name, err)
		}
	}
	if err := os.Symlink(jobs, filepath.Join(m.CacheDir(), "jobs")); err != nil {
		return nil, fmt.Errorf("give %s the share: %w", m.Host().Name, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "srv")); err != nil {
		if err := writeRoots(s.Dir); err != nil {
			return nil, err
		}
	}
	return Settings{
		"pki_dir":      m.pki,
		"file_roots":   map[string][]string{"base": {filepath.Join(dir, "srv/salt")}},
		"pillar_roots": map[string][]string{"base": {filepath.Join(dir, "srv/pillar")}},
	}, nil
}

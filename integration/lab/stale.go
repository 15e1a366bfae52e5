package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const lockPrefix = "saltcluster-lab-"

// takeLock marks the lab as alive for as long as this program lives, however it ends.
func (l *Lab) takeLock() error {
	// Under another name until it is locked: one that looks for stale labs at this very moment would take it for a dead
	// one's.
	f, err := os.CreateTemp(os.TempDir(), "saltcluster-newlab-")
	if err != nil {
		return fmt.Errorf("mark the lab as alive: %w", err)
	}
	if err := l.lockAs(f); err != nil {
		os.Remove(f.Name())
		f.Close()
		return fmt.Errorf("mark the lab as alive: %w", err)
	}
	l.lock = f
	return nil
}

// lockAs locks a new file, writes into it what is to be removed, and gives it a name that no other lab has.
func (l *Lab) lockAs(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	if l.temp && !l.opts.Keep {
		if _, err := f.WriteString(l.dir); err != nil {
			return err
		}
	}
	if err := os.Link(f.Name(), l.lockPath()); err != nil {
		return err
	}
	return os.Remove(f.Name())
}

func (l *Lab) lockPath() string { return filepath.Join(os.TempDir(), lockPrefix+l.id) }

func (l *Lab) releaseLock() error {
	if l.lock == nil {
		return nil
	}
	err := errors.Join(os.Remove(l.lockPath()), l.lock.Close())
	l.lock = nil
	return err
}

// removeStale removes namespaces and directories of labs whose program was killed: those whose lock is free.
// Their processes are gone already, the supervisors saw to it.
func removeStale(ctx context.Context, own string) {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), lockPrefix+"*"))
	for _, path := range locks {
		id := strings.TrimPrefix(filepath.Base(path), lockPrefix)
		if id == own || strings.HasPrefix(id, "lo") {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			removeLab(ctx, id, f)
			os.Remove(path)
		}
		f.Close()
	}
}

func removeLab(ctx context.Context, id string, lock *os.File) {
	left, _ := filepath.Glob("/run/netns/" + nsPrefix + id + "-*")
	for _, ns := range left {
		_ = ip(ctx, "netns", "del", filepath.Base(ns))
	}
	dir := make([]byte, 4096)
	n, _ := lock.ReadAt(dir, 0)
	if d := string(dir[:n]); strings.HasSuffix(d, "scl"+id) {
		unmountBelow(d)
		os.RemoveAll(d)
	}
}

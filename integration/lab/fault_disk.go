package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FillDisk leaves not one free block on the host's disk; FreeDisk gives them back.
func (h *Host) FillDisk() error {
	if h.disk == nil {
		return fmt.Errorf("fill disk of %s: %w", h.Name, ErrNoDisk)
	}
	f, err := os.OpenFile(filepath.Join(h.dir, ballastFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fill disk of %s: %w", h.Name, err)
	}
	defer f.Close()
	for block := int64(64 << 20); block >= 4<<10; {
		end, err := f.Seek(0, 2)
		if err == nil {
			err = unix.Fallocate(int(f.Fd()), 0, end, block)
		}
		switch {
		case errors.Is(err, unix.ENOSPC):
			block /= 4
		case err != nil:
			return fmt.Errorf("fill disk of %s: %w", h.Name, err)
		}
	}
	return nil
}

// FreeDisk undoes FillDisk.
func (h *Host) FreeDisk() error {
	err := os.Remove(filepath.Join(h.dir, ballastFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free disk of %s: %w", h.Name, err)
	}
	return nil
}

// BreakDisk makes the disk read-only the way a disk with bad sectors becomes it: the file system meets an error while
// files are open for writing. PowerOff and PowerOn repair it.
func (h *Host) BreakDisk() error {
	if h.disk == nil || h.disk.device == "" {
		return fmt.Errorf("break disk of %s: %w", h.Name, ErrNoDisk)
	}
	path := filepath.Join("/sys/fs/ext4", filepath.Base(h.disk.device), "trigger_fs_error")
	if err := os.WriteFile(path, []byte("lab\n"), 0o200); err != nil {
		return fmt.Errorf("break disk of %s: %w", h.Name, err)
	}
	return nil
}

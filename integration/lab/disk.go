package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// ErrNoDisk is returned by faults of a disk on a host that has none of its own, and by UseDisk where none can be made.
var ErrNoDisk = errors.New("no disk of its own (needs root, loop devices and ext4)")

const (
	ballastFile = "ballast"        // what fills a disk
	diskGone    = 20 * time.Second // how long a disk may be in use after everything on its host was killed
	ioctlCutOff = 0x8004587d       // EXT4_IOC_SHUTDOWN
	noLogFlush  = uint32(2)        // with it: what has not been synced is lost, as when the power fails
	diskOptions = "errors=remount-ro"
)

// disk is an ext4 file system of a host's own, in a file: what is kept on it can be lost as on a real one.
type disk struct {
	image  string
	device string // /dev/loopN; empty: not mounted
}

// UseDisk gives the host a disk of its own for its whole directory, before anything is laid out there.
func (h *Host) UseDisk(ctx context.Context, mebibytes int) error {
	if os.Geteuid() != 0 || h.ns == "" {
		return fmt.Errorf("disk of %s: %w", h.Name, ErrNoDisk)
	}
	if err := h.lab.shareDisks(); err != nil {
		return err
	}
	h.disk = &disk{image: filepath.Join(h.lab.dir, "net", h.Name+".img")}
	f, err := os.Create(h.disk.image)
	if err != nil {
		return fmt.Errorf("disk of %s: %w", h.Name, err)
	}
	if err := errors.Join(f.Truncate(int64(mebibytes)<<20), f.Close()); err != nil {
		return fmt.Errorf("disk of %s: %w", h.Name, err)
	}
	if err := tool(ctx, "mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1",
		h.disk.image); err != nil {
		return fmt.Errorf("disk of %s: %w: %w", h.Name, ErrNoDisk, err)
	}
	return h.mountDisk(ctx)
}

// shareDisks makes the lab's directory a mount whose changes below reach the copies of the mount table that every
// process of every lab has, so that a disk taken away here is away for all.
func (l *Lab) shareDisks() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.disks {
		return nil
	}
	if err := unix.Mount(l.dir, l.dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", l.dir, err)
	}
	l.disks = true
	if err := unix.Mount("", l.dir, "", unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts of %s: %w", l.dir, err)
	}
	return nil
}

func (l *Lab) unshareDisks() error {
	if !l.disks {
		return nil
	}
	return unix.Unmount(l.dir, unix.MNT_DETACH)
}

func (h *Host) mountDisk(ctx context.Context) error {
	losetup, err := exec.LookPath("losetup")
	if err != nil {
		losetup = "/usr/sbin/losetup"
	}
	out, err := exec.CommandContext(ctx, losetup, "--find", "--show", h.disk.image).Output()
	if err != nil {
		return fmt.Errorf("attach disk of %s: %w: %w", h.Name, ErrNoDisk, err)
	}
	dev := strings.TrimSpace(string(out))
	if err := unix.Mount(dev, h.dir, "ext4", unix.MS_NOATIME, diskOptions); err != nil {
		return errors.Join(fmt.Errorf("mount disk of %s: %w", h.Name, err), tool(ctx, "losetup", "-d", dev))
	}
	h.disk.device = dev
	// From here on the device goes with the last mount.
	return tool(ctx, "losetup", "-d", dev)
}

// dropDisk takes the disk away and waits until it is not in use any more.
func (h *Host) dropDisk(ctx context.Context) error {
	d := h.disk
	if d == nil || d.device == "" {
		return nil
	}
	if err := unix.Unmount(h.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount disk of %s: %w", h.Name, err)
	}
	dev := d.device
	d.device = ""
	return Eventually(ctx, diskGone, "the disk of "+h.Name+" to be free", func(context.Context) error {
		name, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(dev), "loop/backing_file"))
		if err == nil && strings.TrimSpace(string(name)) == d.image {
			return errors.New("still in use")
		}
		return nil
	})
}

func (h *Host) closeDisk() error { return errors.Join(h.dropSmall(), h.dropDisk(context.Background())) }

// PowerOff ends everything on the host at once. On a disk of its own, what was not synced is lost; elsewhere all that
// was written is still there. The hosts' network stays.
func (h *Host) PowerOff(ctx context.Context) error {
	h.mu.Lock()
	var g errgroup.Group
	for r := range h.runs {
		signalTree(r.cmd.Process.Pid, unix.SIGKILL)
		g.Go(func() error {
			if err := killTree(r.cmd.Process.Pid, 20*time.Second); err != nil {
				return err
			}
			<-r.done
			return nil
		})
	}
	h.mu.Unlock()
	err := h.cutOffDisk()
	if err := errors.Join(err, g.Wait()); err != nil {
		return fmt.Errorf("power off %s: %w", h.Name, err)
	}
	return h.dropDisk(ctx)
}

// cutOffDisk makes the file system forget what has not been synced.
func (h *Host) cutOffDisk() error {
	if h.disk == nil || h.disk.device == "" {
		return nil
	}
	f, err := os.Open(h.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), ioctlCutOff, int(noLogFlush))
}

// PowerOn gives the host its disk back, checked as at any boot. Its processes are the caller's to start.
func (h *Host) PowerOn(ctx context.Context) error {
	if h.disk == nil || h.disk.device != "" {
		return nil
	}
	if err := tool(ctx, "e2fsck", "-p", h.disk.image); err != nil && !strings.Contains(err.Error(), "exit status 1:") {
		return fmt.Errorf("check disk of %s: %w", h.Name, err)
	}
	return h.mountDisk(ctx)
}

// SyncDisk writes all that is on the host's disk out: what was laid out is as old as any installation.
func (h *Host) SyncDisk() error {
	f, err := os.Open(h.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// unmountBelow removes what a killed program has left mounted at dir and below.
func unmountBelow(dir string) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	lines := strings.Split(string(raw), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // the deepest last
		fields := strings.Fields(lines[i])
		if len(fields) > 4 && (fields[4] == dir || strings.HasPrefix(fields[4], dir+"/")) {
			_ = unix.Unmount(fields[4], unix.MNT_DETACH)
		}
	}
}

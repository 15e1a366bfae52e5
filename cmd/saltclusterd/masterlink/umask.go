package masterlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/durable"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/signal"
)

const (
	// umaskSettle is how long a master that was just started may have another umask for files of its own.
	umaskSettle = 2 * time.Second
	// umaskEvery is how often the umask is read without such an occasion.
	umaskEvery = time.Minute
)

// Umask is the umask of the local master, which files that are written in its place must have. The kernel reports it
// while the master runs. Where the master's processes are hidden from this one (by the systemd unit, and in
// containers), the mode of the directory counts that the master makes for each job before it publishes the job. While
// the master is down the last umask counts, which is kept on disk.
type Umask struct {
	master *localmaster.Config
	path   string
	log    *slog.Logger

	mask       atomic.Uint32
	fromKernel atomic.Bool // directories of jobs need not be read
	stored     uint32      // used by Follow alone
	started    chan struct{}
	published  chan string
}

// NewUmask reads the umask that an earlier process stored at path.
func NewUmask(master *localmaster.Config, path string, log *slog.Logger) *Umask {
	u := &Umask{
		master: master, path: path, log: log, started: make(chan struct{}, 1), published: make(chan string, 1),
	}
	mask, err := readUmask(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("umask of the salt-master not read", "path", path, "err", err)
	}
	u.mask.Store(mask)
	u.stored = mask
	return u
}

// readUmask returns the usual umask with an error.
func readUmask(path string) (uint32, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return eventbus.UsualUmask, err
	}
	mask, err := strconv.ParseUint(strings.TrimSpace(string(text)), 8, 9)
	if err != nil || mask&0o700 != 0 {
		return eventbus.UsualUmask, fmt.Errorf("no umask: %.20q", text)
	}
	return uint32(mask), nil
}

// Mask returns the umask.
func (u *Umask) Mask() uint32 { return u.mask.Load() }

// NotifyStarted notes that the master may be another process now.
func (u *Umask) NotifyStarted() { signal.Send(u.started) }

// NotifyPublished notes that the local master has published a job.
func (u *Umask) NotifyPublished(jid string) {
	if u.fromKernel.Load() {
		return
	}
	select {
	case u.published <- jid:
	default: // a later job shows the same
	}
}

// Ask asks the kernel for the umask.
func (u *Umask) Ask(ctx context.Context) {
	mask, err := eventbus.Umask(ctx, u.master)
	u.fromKernel.Store(err == nil)
	if err != nil {
		u.log.Debug("umask of the salt-master not found", "err", err)
		return
	}
	u.set(mask)
}

// readJobDir takes the umask from the directory of a job that the local master has published.
func (u *Umask) readJobDir(jid string) {
	mask, ok := jobcache.Umask(u.master.CacheDir, u.master.Text("hash_type"), jid)
	if ok && !u.fromKernel.Load() {
		u.set(mask)
	}
}

func (u *Umask) set(mask uint32) {
	if was := u.mask.Swap(mask); was != mask {
		u.log.Info("job cache is written with the salt-master's umask",
			"mode", fmt.Sprintf("%03o", mask), "before", fmt.Sprintf("%03o", was))
	}
}

// Follow keeps the umask up to date, and on disk, until ctx ends.
func (u *Umask) Follow(ctx context.Context) {
	every := time.NewTicker(umaskEvery)
	defer every.Stop()
	for {
		u.store()
		select {
		case <-ctx.Done():
			return
		case jid := <-u.published:
			u.readJobDir(jid)
			continue
		case <-u.started:
			u.Ask(ctx)
			if !backoff.Sleep(ctx, umaskSettle) {
				return
			}
		case <-every.C:
		}
		u.Ask(ctx)
	}
}

func (u *Umask) store() {
	mask := u.Mask()
	if mask == u.stored {
		return
	}
	if err := durable.WriteFile(u.path, fmt.Appendf(nil, "%03o\n", mask), 0o600); err != nil {
		u.log.Warn("umask of the salt-master not stored", "path", u.path, "err", err)
		return
	}
	u.stored = mask
}

package daemon

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
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
)

const (
	umaskFile = "umask"
	// umaskSettle is how long a master that was just started may have another umask for files of its own.
	umaskSettle = 2 * time.Second
	// umaskEvery is how often it is looked at beside that.
	umaskEvery = time.Minute
)

// masterUmask is the umask of the local master, which what is written in its stead must have. The kernel says it while the master runs.
// Where its processes are hidden from us (the systemd unit does that, and containers), the directory tells that the master makes for each
// job before it publishes it. While the master is down the last one that was known counts, over restarts of this program too.
type masterUmask struct {
	master *localmaster.Config
	path   string
	log    *slog.Logger

	mask      atomic.Uint32
	told      atomic.Bool // the kernel says it: there is no need to look at directories
	stored    uint32      // of follow, like what comes
	started   chan struct{}
	published chan string
}

func newMasterUmask(master *localmaster.Config, path string, log *slog.Logger) *masterUmask {
	u := &masterUmask{master: master, path: path, log: log, started: make(chan struct{}, 1), published: make(chan string, 1)}
	mask, err := readUmask(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("umask of the salt-master not remembered", "path", path, "err", err)
	}
	u.mask.Store(mask)
	u.stored = mask
	return u
}

// readUmask reads what an earlier process has noted.
func readUmask(path string) (uint32, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return localmaster.UsualUmask, err
	}
	mask, err := strconv.ParseUint(strings.TrimSpace(string(text)), 8, 9)
	if err != nil || mask&0o700 != 0 {
		return localmaster.UsualUmask, fmt.Errorf("no umask: %.20q", text)
	}
	return uint32(mask), nil
}

func (u *masterUmask) get() uint32 { return u.mask.Load() }

// masterStarted says that it may be another one now.
func (u *masterUmask) masterStarted() {
	select {
	case u.started <- struct{}{}:
	default:
	}
}

// publishedHere says that the local master has published a job.
func (u *masterUmask) publishedHere(jid string) {
	if u.told.Load() {
		return
	}
	select {
	case u.published <- jid:
	default: // the next one will do
	}
}

// look asks the kernel.
func (u *masterUmask) look(ctx context.Context) {
	mask, err := u.master.Umask(ctx)
	u.told.Store(err == nil)
	if err != nil {
		u.log.Debug("umask of the salt-master not seen", "err", err)
		return
	}
	u.set(mask)
}

// lookAt goes by the directory of a job that the local master has published.
func (u *masterUmask) lookAt(jid string) {
	if mask, ok := jobcache.Umask(u.master.CacheDir, u.master.Text("hash_type"), jid); ok && !u.told.Load() {
		u.set(mask)
	}
}

func (u *masterUmask) set(mask uint32) {
	if was := u.mask.Swap(mask); was != mask {
		u.log.Info("job cache is written with the salt-master's umask", "mode", fmt.Sprintf("%03o", mask), "before", fmt.Sprintf("%03o", was))
	}
}

// follow keeps it up to date, and on disk.
func (u *masterUmask) follow(ctx context.Context) {
	every := time.NewTicker(umaskEvery)
	defer every.Stop()
	for {
		u.store()
		select {
		case <-ctx.Done():
			return
		case jid := <-u.published:
			u.lookAt(jid)
			continue
		case <-u.started:
			u.look(ctx)
			if !backoff.Sleep(ctx, umaskSettle) {
				return
			}
		case <-every.C:
		}
		u.look(ctx)
	}
}

func (u *masterUmask) store() {
	mask := u.get()
	if mask == u.stored {
		return
	}
	if err := durable.WriteFile(u.path, fmt.Appendf(nil, "%03o\n", mask), 0o600); err != nil {
		u.log.Warn("umask of the salt-master not stored", "path", u.path, "err", err)
		return
	}
	u.stored = mask
}

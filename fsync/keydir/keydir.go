package keydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
)

// ErrClosed is returned by what waits when the Dir is closed.
var ErrClosed = errors.New("keydir: closed")

// KeyLog is consensus as this package needs it.
type KeyLog interface {
	// Propose returns one result per command, or an error when it is not known what became of them.
	Propose(ctx context.Context, cmds []state.Command) ([]state.Result, error)
	View() state.View
	// Watch returns a channel that gets a value after changes of the view, several changes at once perhaps.
	Watch(ctx context.Context) <-chan struct{}
}

// Config is what a Dir needs. Registerer may be nil.
type Config struct {
	PKIDir   string  // pki_dir of the stock master
	StateDir string  // for the base and the copies put aside; not on a shared file system
	Node     node.ID // for the audit of proposals
	// Founder says that this node has bootstrapped the cluster: at the first contact of a base-less node with an empty
	// consensus, its keys are taken as they are. It may stay set for ever.
	Founder bool
	// Current says whether the view has caught up with the cluster. Nothing is done before it has once. Nil: the view is
	// taken to be current as soon as it knows all that this node has on disk.
	Current func() bool
	// Shared, when not nil, says that other nodes have the same directories.
	Shared *Shared
	// Store, when not nil, says that the master has its keys in the store of keys.cache_driver: mmap_key, and how that is
	// laid out. Then it and the directories are kept the same.
	Store *mmapkeys.Geometry
	// MaxLosses is the percentage of the accepted keys that may be deleted, rejected or replaced in the directories within
	// a minute. More than that, and more than three, are held, see Held; so are two or three at once that are more than a
	// third of all, losses that within an hour, more than three, would leave less than half of the keys, and all others
	// while some are held. Zero: nothing is held.
	MaxLosses int
	// HoldAll, when not nil, reports whether a program on this host takes keys away from minions that it does not see, as
	// thorium does with those of other masters. Then each loss is held, unless MaxLosses is zero or 100.
	HoldAll func() bool
	// Now is the time of the cluster, which proposals are dated with; nil: this host's.
	Now func() time.Time
	// Mode of new key files; zero: 0644, as 3006 and 3007 leave them.
	Mode       fs.FileMode
	Log        KeyLog
	Logger     *slog.Logger
	Timing     Timing // zero fields: defaults
	Registerer prometheus.Registerer
}

// Timing are the package's timeouts and intervals.
type Timing struct {
	Debounce    time.Duration // from the first hint to a look; 25 ms
	Settle      time.Duration // an edit must look the same for so long; 60 ms
	Deletion    time.Duration // so long for a file that is gone, for 3008 deletes before it writes; 120 ms
	InvalidWait time.Duration // so long for an id in several directories, and for what is not a key; 2 s
	Rescan      time.Duration // looks without a hint; 30 s
	Retry       time.Duration // after a proposal that failed; 1 s
	Propose     time.Duration // timeout of one proposal; 10 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.Debounce, 25*time.Millisecond)
	set(&t.Settle, 60*time.Millisecond)
	set(&t.Deletion, 120*time.Millisecond)
	set(&t.InvalidWait, 2*time.Second)
	set(&t.Rescan, 30*time.Second)
	set(&t.Retry, time.Second)
	set(&t.Propose, 10*time.Second)
	return t
}

// Dir mirrors the keys. Create it with New.
type Dir struct {
	cfg     Config
	metrics *metrics
	synced  progress
	store   atomic.Pointer[StoreStatus]
	settled atomic.Bool
	watcher func() (*watcher, error) // newWatcher, except in tests
	work    work

	heldKeys atomic.Pointer[[]string]
	forget   chan chan<- heldForgotten

	cancel context.CancelCauseFunc
	g      *errgroup.Group
	ctx    context.Context
}

// New checks the configuration.
func New(cfg Config) (*Dir, error) {
	switch {
	case cfg.PKIDir == "" || cfg.StateDir == "":
		return nil, errors.New("keydir: pki_dir and state directory must be set")
	case cfg.Store != nil && cfg.Shared != nil:
		return nil, errors.New("keydir: a key store of the master cannot be synchronised on a shared file system")
	case cfg.Log == nil:
		return nil, errors.New("keydir: no consensus to talk to")
	}
	if cfg.Mode == 0 {
		cfg.Mode = 0o644
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Shared != nil && cfg.Timing.Rescan == 0 {
		cfg.Timing.Rescan = sharedRescan
	}
	cfg.Timing = cfg.Timing.withDefaults()
	return &Dir{
		cfg: cfg, metrics: newMetrics(cfg.Registerer), watcher: newWatcher, forget: make(chan chan<- heldForgotten),
	}, nil
}

// Open reads the base and starts mirroring. It does not wait for the first round; see WaitSynced.
func (d *Dir) Open(ctx context.Context) error {
	var l *loop
	if d.cfg.Shared == nil {
		var err error
		if l, err = d.newLoop(); err != nil {
			return fmt.Errorf("open keydir: %w", err)
		}
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.g, d.ctx = errgroup.WithContext(run)
	if l == nil {
		d.g.Go(func() error { return d.takeTurns(d.ctx) })
		return nil
	}
	d.g.Go(func() error { return l.runLoop(d.ctx) })
	d.g.Go(func() error { return l.proposer.runBatches(d.ctx) })
	return nil
}

// Done is closed when the Dir has stopped.
func (d *Dir) Done() <-chan struct{} { return d.ctx.Done() }

// Close stops mirroring, saves the base and waits.
func (d *Dir) Close() error {
	if d.cancel == nil {
		return nil
	}
	d.cancel(ErrClosed)
	err := d.g.Wait()
	d.synced.close()
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Synced says whether what consensus decided about the keys up to rev is on disk.
func (d *Dir) Synced(rev uint64) bool { return d.synced.hasReached(rev) }

// Rev is the revision of consensus that is on disk.
func (d *Dir) Rev() uint64 { return d.synced.currentRev() }

// Settled says whether everything that this node's directories held when it met the cluster has been gone through: of a
// founder, whether its keys are the cluster's.
func (d *Dir) Settled() bool { return d.settled.Load() }

// Writing tells how many of the keys that are to be written in one go are on disk.
func (d *Dir) Writing() (done, total int) { return int(d.work.done.Load()), int(d.work.total.Load()) }

// WaitSynced waits until what consensus decided about the keys up to rev is on disk. It returns ctx's error, or
// ErrClosed.
func (d *Dir) WaitSynced(ctx context.Context, rev uint64) error { return d.synced.waitForRev(ctx, rev) }

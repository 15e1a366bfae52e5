package rootsadmin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// Log is consensus.
type Log interface {
	View() state.View
	CaughtUp() bool
	Watch(ctx context.Context) <-chan struct{}
	Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error)
}

// Config is what Roots needs. All fields must be set.
type Config struct {
	Self    node.ID
	Options config.Roots
	Paths   config.Paths
	Shared  bool // the nodes share their file system
	Master  *localmaster.Config

	Log  Log
	HTTP *http.Client // reaches members (peer.Port)

	Others  func() []node.ID   // the other members that have a master
	Sources func() []node.ID   // those of them that are alive, the best to fetch from first
	Alive   func(node.ID) bool // whether a member is seen
	// Versions lists the members that do not understand commands about roots, and those whose version is not known yet.
	Versions func() (older, unseen []string)

	// HoldFiles makes requests for files wait until release is called.
	HoldFiles   func(ctx context.Context) (release func(), err error)
	ForgetFiles func()                  // makes the file server of this process list the files anew
	Serving     func() bool             // minions can connect
	Outcome     func() adminapi.Outcome // describes this node, without a message

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Roots are the file and pillar roots of this node.
type Roots struct {
	cfg    Config
	off    string       // why they are not replicated; empty if they are
	engine *roots.Store // nil if they are not replicated
	slots  []roots.Slot
	notes  []string // what an operator should know about the slots
	order  *order   // nil if they are not replicated

	opened atomic.Bool
	behind atomic.Int64 // since when they are behind the cluster, Unix time in ns; 0 if they are not

	stop context.CancelFunc // ends the goroutine of order
	wg   sync.WaitGroup
}

// New returns roots that are not open.
func New(cfg Config) (*Roots, error) {
	switch {
	case cfg.Shared:
		return &Roots{cfg: cfg, off: "the nodes share their file system (cluster_isolated_filesystem: False)"}, nil
	case cfg.Options.Sync == config.RootsOff:
		return &Roots{cfg: cfg, off: "cluster_roots_sync is off"}, nil
	}
	c := cfg.Master
	owner, err := c.Owner()
	if err != nil {
		return nil, err
	}
	r := &Roots{cfg: cfg}
	r.slots, r.notes = findSlots(c, cfg.Paths.StateDir, cfg.Paths.RunDir, c.CacheDir, c.PkiDir, c.SockDir)
	r.order = newOrder(roots.PathsOf(r.slots, c.Text("root_dir")), cfg, r.pathsOf)
	r.engine, err = roots.New(roots.Config{
		Self: cfg.Self, Slots: r.slots, StateDir: r.dir(), UID: owner.UID, GID: owner.GID,
		Mode: roots.Mode(cfg.Options.Sync), MaxDeletePercent: cfg.Options.MaxDelete, Ignore: cfg.Options.Ignore,
		HistoryBytes: int64(cfg.Options.History),
		Log:          revisionLog{r}, Peers: contentPeers{r}, Gate: gate(cfg.HoldFiles), From: peer.FromContext,
		AfterSwitch: func([]roots.SlotName) { r.forgetFileLists() }, Order: r.order.awaitMisplaced,
		Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// dir is where the engine keeps its database.
func (r *Roots) dir() string { return filepath.Join(r.cfg.Paths.StateDir, "roots") }

// Open opens the engine and lets other members fetch from it.
func (r *Roots) Open(ctx context.Context) error {
	if r.engine == nil {
		return nil
	}
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = cancel
	r.wg.Go(func() { r.order.runOrder(following) })
	if err := r.engine.Open(ctx); err != nil {
		r.stopOrder()
		return err
	}
	r.opened.Store(true)
	return nil
}

// Close closes the engine and waits for the goroutine.
func (r *Roots) Close() error {
	if r.engine == nil {
		return nil
	}
	r.opened.Store(false)
	defer r.stopOrder()
	return r.engine.Close()
}

func (r *Roots) stopOrder() {
	r.stop()
	r.wg.Wait()
}

// Off says why the roots are not replicated; empty if they are.
func (r *Roots) Off() string { return r.off }

// Dirs lists the directories that are replicated.
func (r *Roots) Dirs() []string {
	var dirs []string
	for _, slot := range r.slots {
		dirs = append(dirs, slot.Dir)
	}
	return dirs
}

// Stored says whether this node has ever replicated roots.
func (r *Roots) Stored() bool {
	_, err := os.Stat(filepath.Join(r.dir(), "roots.db"))
	return err == nil
}

// checkUsable says why this node's roots cannot be asked; nil if they can.
func (r *Roots) checkUsable() error {
	switch {
	case r.off != "":
		return errors.New("roots are not replicated here: " + r.off)
	case !r.opened.Load():
		return errors.New("this node's roots are being opened")
	}
	return nil
}

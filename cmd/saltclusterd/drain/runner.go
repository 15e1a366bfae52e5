package drain

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/router"
	"saltclusterd/signal"
)

// Log is the consensus log.
type Log interface {
	View() state.View
	Leader() node.ID
	Watch(ctx context.Context) <-chan struct{} // closed when ctx ends
	Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error)
}

// PublishPort is the port on which minions subscribe (*edge.PubEdge).
type PublishPort interface {
	Drain(ctx context.Context, over time.Duration)
	Stats() edge.PubStats
}

// RequestPort is the port for requests of minions (*edge.ReqEdge).
type RequestPort interface {
	Drain(ctx context.Context, over time.Duration)
	Stats() edge.ReqStats
}

// Returns are the journals of returns (*returns.Service).
type Returns interface {
	Kept() uint64
	Deferred() uint64
	Unstored() uint64
	Aside() int
	HandOver(ctx context.Context) (left int, err error)
}

// JobCache is the replicated job cache (*jobs.Store).
type JobCache interface{ Status() jobs.Status }

// Config is what a Runner works with.
type Config struct {
	Self     node.ID
	Log      Log
	Publish  PublishPort
	Requests RequestPort
	Returns  Returns
	Cache    JobCache
	Jobs     *RunningJobs
	Routes   func() router.View

	Announce func(draining bool)         // informs load balancers and the other members
	Resign   func(context.Context)       // hands the leadership over if this node has it
	Reopen   func(context.Context) error // has both ports listen again
	Fail     func(error)                 // ends the membership

	AnnounceTime time.Duration // how long load balancers need to notice
	DrainTime    time.Duration // over which minions leave, unless an operator wants another time
	Logger       *slog.Logger
}

// Runner carries out drains of this node, one at a time.
type Runner struct {
	cfg Config

	mu        sync.Mutex
	options   Options
	phase     Phase
	announced time.Time // when load balancers were informed; zero: they are not
	stop      func()    // ends the drain in progress and waits for it
	stopping  bool      // the process stops: what consensus says does not matter any more

	optionsSet chan struct{} // holds one value when there are new options
}

// New returns the Runner of a node that serves minions.
func New(cfg Config) *Runner {
	return &Runner{cfg: cfg, phase: Serving, optionsSet: make(chan struct{}, 1)}
}

// setOptions stores what an operator wants of the next drain, or of the one in progress.
func (r *Runner) setOptions(o Options) {
	r.mu.Lock()
	r.options = o
	r.mu.Unlock()
	signal.Send(r.optionsSet)
}

// mustRestart says whether the drain in progress has to start again because an operator wants another time. Options
// without a time are dropped: that operator only follows the drain.
func (r *Runner) mustRestart() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil || r.stopping {
		return false
	}
	if r.options.Over == 0 {
		r.options = Options{}
	}
	return r.options.Over > 0
}

// Draining says whether minions leave this node or have left it.
func (r *Runner) Draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.announced.IsZero()
}

// InProgress says whether a drain has not reached its end, or is being taken back.
func (r *Runner) InProgress() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.announced.IsZero() && r.phase != Drained
}

// Wanted says whether the cluster wants this node drained.
func (r *Runner) Wanted() bool {
	self, ok := r.cfg.Log.View().Member(r.cfg.Self)
	return ok && self.Draining
}

// Report describes the drain of this node. Returns are counted where they come from before where they go to, or else
// one that moves meanwhile is counted nowhere, and a node that is removed takes it away.
func (r *Runner) Report() Report {
	r.mu.Lock()
	out := Report{Phase: r.phase}
	r.mu.Unlock()
	c := r.cfg
	pub, req := c.Publish.Stats(), c.Requests.Stats()
	out.Subscribers, out.Connections, out.InFlight = pub.Subscribers, req.Conns, req.InFlight
	out.Jobs, out.Leader = c.Jobs.Running(), c.Log.Leader() == c.Self
	out.Kept = c.Returns.Kept()
	out.Unstored = c.Returns.Unstored()
	out.Deferred = c.Returns.Deferred()
	out.Unstored += countUncopied(c.Cache.Status())
	out.Aside = c.Returns.Aside()
	return out
}

func (r *Runner) setPhase(p Phase) {
	r.mu.Lock()
	changed := r.phase != p
	r.phase = p
	r.mu.Unlock()
	if changed {
		r.cfg.Logger.Info("drain", "node", r.cfg.Self, "state", string(p))
	}
}

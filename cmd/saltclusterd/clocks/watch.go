package clocks

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/metric"
	"saltclusterd/sidecar/hlc"
)

const (
	// Interval is how often the others are asked.
	Interval = 5 * time.Second
	// maxAge is how old an answer may be to be judged.
	maxAge = 4 * Interval
	// maxSkew is how far a clock may be off before that is a problem. Logs do not match long before; doctor says so.
	maxSkew = time.Minute
	// retryInterval is the pause while a process that has just started has no answer of some.
	retryInterval = time.Second
	// askTimeout bounds the question to each member.
	askTimeout = time.Second
)

// Log is the consensus log.
type Log interface{ View() state.View }

// Reading is what a member answers about its clocks.
type Reading struct {
	Wall   time.Time     // zero: a member of before does not say
	Serial hlc.Timestamp // the newest that it has stamped or seen
}

// Config is what a Watch works with.
type Config struct {
	Self     node.ID
	Log      Log
	Read     func(ctx context.Context, id node.ID) (Reading, error) // asks another member
	Observe  func(serial hlc.Timestamp) error                       // has this node's serials follow another member's
	Wall     func() time.Time                                       // the clock of this host
	Elapsed  func() time.Duration                                   // nil: hlc.Elapsed
	Interval time.Duration

	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Watch reads the clocks of the other members.
type Watch struct {
	cfg   Config
	times *hlc.Reference
	wrong atomic.Bool // this host's is off, as the log has it
	reads prometheus.Counter
}

// NewWatch returns a Watch that has read only this host's clock.
func NewWatch(cfg Config) *Watch {
	if cfg.Elapsed == nil {
		cfg.Elapsed = hlc.Elapsed
	}
	return &Watch{
		cfg: cfg, times: hlc.NewReference(cfg.Wall, cfg.Elapsed),
		reads: metric.NewSet(cfg.Registerer, "node").NewCounter("clock_readings_total",
			"How often the clocks of all other members were read."),
	}
}

// Reference returns the time that the members agree on.
func (w *Watch) Reference() *hlc.Reference { return w.times }

// Run reads the clocks of the other members until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	began := time.Now()
	for {
		missing := w.readOthers(ctx)
		known := w.cfg.Log.View().Initialized()
		if known {
			w.times.Settle()
		}
		w.logChange()
		w.reads.Inc()
		pause := w.cfg.Interval
		if !known || missing > 0 && time.Since(began) < maxAge {
			pause = min(pause, retryInterval)
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// readOthers asks every other member once, and returns how many did not answer.
func (w *Watch) readOthers(ctx context.Context) (missing int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var ids []node.ID
	for _, m := range w.cfg.Log.View().Members() {
		if m.ID != w.cfg.Self {
			ids = append(ids, m.ID)
		}
	}
	w.times.Keep(ids)
	return len(peerrpc.AskAll(ctx, ids, w.readOne).Failed)
}

var errNoTime = errors.New("its answer lacks the time")

// readOne asks one member for its time and its newest serial.
func (w *Watch) readOne(ctx context.Context, id node.ID) (peerrpc.None, error) {
	asked := w.times.Elapsed()
	r, err := w.cfg.Read(ctx, id)
	if err != nil {
		return peerrpc.None{}, err
	}
	if r.Wall.IsZero() {
		return peerrpc.None{}, errNoTime
	}
	w.times.Note(id, r.Wall, (asked+w.times.Elapsed())/2)
	if err := w.cfg.Observe(r.Serial); err != nil {
		w.cfg.Logger.Warn("serial of a peer refused", "node", id, "err", err)
	}
	return peerrpc.None{}, nil
}

// IsFresh says whether the clock of a member was read lately, so that this node judges it itself.
func (w *Watch) IsFresh(id node.ID) bool {
	_, ok := w.offsets()[id]
	return ok
}

func (w *Watch) offsets() map[node.ID]time.Duration { return w.times.Offsets(w.cfg.Self, maxAge) }

// judge lists the clocks that are off, if a majority agrees on a time.
func (w *Watch) judge() (off []hlc.Off, majority bool) { return hlc.Judge(w.offsets(), maxSkew) }

// logChange logs when this host's clock is found to be off, and when it is right again.
func (w *Watch) logChange() {
	found, majority := w.judge()
	i := slices.IndexFunc(found, func(o hlc.Off) bool { return o.Node == w.cfg.Self })
	off := majority && i >= 0
	if w.wrong.Swap(off) == off {
		return
	}
	if off {
		w.cfg.Logger.Warn("this host's clock is wrong: the cluster's serials follow the other nodes' clocks",
			"ahead", found[i].Ahead.Round(time.Second))
	} else {
		w.cfg.Logger.Info("this host's clock agrees with the other nodes' clocks")
	}
}

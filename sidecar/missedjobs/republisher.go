package missedjobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
	"saltclusterd/signal"
)

const (
	// scanDelay is the time from the subscription to the scan of the job cache.
	scanDelay = 3 * time.Second
	// sendTime is the longest time that a master needs from saving a job to sending it. The scan ignores younger jobs:
	// they may still arrive.
	sendTime = 2 * time.Second
)

// Config configures a Republisher.
type Config struct {
	Ledger     *Ledger
	CacheDir   string                    // the master's cachedir
	Major      int                       // the master's version
	MasterID   string                    // master_id
	Off        func() string             // why missed jobs are not published; empty: they are
	JobTimeout func() time.Duration      // how long a command line waits for a job
	Publish    func(plain []byte) error  // hands a publication to all minions
	Content    func(plain []byte) uint64 // tells jobs of one id apart: batches publish several
	Released   func() bool               // another process publishes from now on
	Now        func() time.Time
	Elapsed    func() time.Duration // nil: hlc.Elapsed
	Logger     *slog.Logger
	// Registerer may be nil.
	Registerer prometheus.Registerer
}

// Republisher scans the job cache after each subscription and publishes the jobs that were missed.
type Republisher struct {
	cfg       Config
	connected chan struct{}
	published prometheus.Counter
	stood     *standstill

	mu    sync.Mutex
	given map[givenJob]time.Time // republished jobs

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// givenJob identifies a republished job.
type givenJob struct {
	jid     string
	content uint64
}

// New returns a Republisher. Before Open it only records the jobs it sees.
func New(cfg Config) *Republisher {
	if cfg.Elapsed == nil {
		cfg.Elapsed = hlc.Elapsed
	}
	return &Republisher{
		stood: &standstill{now: cfg.Now, elapsed: cfg.Elapsed, least: cfg.JobTimeout, ran: cfg.Elapsed()},
		cfg:   cfg, connected: make(chan struct{}, 1), given: map[givenJob]time.Time{},
		published: metric.NewSet(cfg.Registerer, "master").NewCounter("republished_jobs_total",
			"Jobs that the local salt-master published while saltclusterd was not connected to it and that saltclusterd published later."),
	}
}

// Open opens the ledger and starts the scans. A ledger that cannot be opened is logged and not an error.
func (r *Republisher) Open(ctx context.Context) error {
	if err := r.cfg.Ledger.Open(); err != nil {
		r.cfg.Logger.Warn("jobs published while saltclusterd is down will be lost", "err", err)
	}
	r.stood.begin()
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.wg.Go(func() { r.runScans(ctx) })
	return nil
}

// Close stops the scans. After a takeover it removes the ledger: the new process has seen jobs already that it can
// record only in a ledger of its own.
func (r *Republisher) Close() error {
	if r.cancel != nil {
		r.cancel()
	}
	r.wg.Wait()
	if r.cfg.Released() {
		r.cfg.Ledger.Remove()
		return nil
	}
	return r.cfg.Ledger.Close()
}

// Seen records a job of any master. Call it before the job is passed on.
func (r *Republisher) Seen(jid string) {
	if err := r.cfg.Ledger.Record(jid); err != nil {
		r.cfg.Logger.Warn("jobs published while saltclusterd is down will be lost", "err", err)
	}
}

// NotifyConnected reports that the subscription to the master is established.
func (r *Republisher) NotifyConnected() { signal.Send(r.connected) }

// Republished reports whether a publication of the master was published from the job cache before.
func (r *Republisher) Republished(jid string, plain []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.given) == 0 {
		return false
	}
	_, ok := r.given[givenJob{jid, r.cfg.Content(plain)}]
	return ok
}

func (r *Republisher) runScans(ctx context.Context) {
	scan := time.NewTimer(scanDelay)
	scan.Stop()
	defer scan.Stop()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.stood.look()
		case <-r.connected:
			scan.Reset(scanDelay)
		case <-scan.C:
			r.publishMissed(ctx)
		}
	}
}

// publishMissed publishes the jobs in the job cache that were not seen.
func (r *Republisher) publishMissed(ctx context.Context) {
	if r.cfg.Off() != "" {
		return
	}
	now := r.cfg.Now()
	since := now.Add(-r.cfg.JobTimeout())
	jobs, err := listJobs(ctx, r.cfg.CacheDir, since, now)
	if err != nil {
		r.cfg.Logger.Warn("missed jobs not scanned", "err", err)
	}
	for i, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		if j.at.After(now.Add(-sendTime)) {
			continue
		}
		if has, from, err := r.cfg.Ledger.Has(j.jid); err != nil || has || !j.at.After(from) {
			continue
		}
		if isStopped(j.jid, jobs[i+1:]) {
			r.cfg.Logger.Info("missed job not published: it was stopped since", "jid", j.jid)
			continue
		}
		r.republishJob(j, now)
	}
}

// isStopped reports whether one of the jobs that were given after it stops a job.
func isStopped(jid string, later []job) bool {
	return slices.ContainsFunc(later, func(by job) bool { return late.StopsOf(by.load).Stop(jid) })
}

func (r *Republisher) republishJob(j job, now time.Time) {
	log := r.cfg.Logger.With("jid", j.jid)
	plain, err := master{r.cfg.Major, r.cfg.MasterID}.buildPublication(j.load)
	if errors.Is(err, errNotPublished) {
		return
	}
	if err != nil {
		log.Warn("missed job not published", "err", err)
		return
	}
	r.mu.Lock()
	for old, at := range r.given {
		if now.Sub(at) > time.Hour {
			delete(r.given, old)
		}
	}
	r.given[givenJob{j.jid, r.cfg.Content(plain)}] = now
	r.mu.Unlock()
	if err := r.cfg.Publish(plain); err != nil {
		log.Error("missed job not published", "err", err)
		return
	}
	r.published.Inc()
	log.Info("missed job published", "age", now.Sub(j.at).Round(time.Millisecond))
}

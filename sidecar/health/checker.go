package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// CheckerConfig tunes a Checker. All fields may be zero.
type CheckerConfig struct {
	Interval   time.Duration            // between two runs of a check; default 1 s
	Timeout    time.Duration            // of one run; default 2 s
	SlowStart  time.Duration            // over which AgentLine asks for ever more after a recovery; 0: all at once
	Adapt      func(text string) string // puts what a check says into the words of this host; nil: as it is
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Checker runs the checks and keeps their newest results.
type Checker struct {
	cfg      CheckerConfig
	log      *slog.Logger
	checks   []*check // fixed after Open
	draining atomic.Bool
	resumed  atomic.Int64 // when draining ended, in nanoseconds; 0: it never began
	opened   bool

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// check is one registered function and what it said last.
type check struct {
	name  string
	scope Scope
	run   CheckFunc
	kick  chan struct{} // holds one wish to run now

	mu      sync.Mutex
	known   bool // it has answered once
	last    Result
	since   time.Time     // of last.Level
	well    time.Time     // since when it does not fail; zero: it does
	running time.Time     // start of the run in progress; zero: none
	ended   chan struct{} // closed at the end of the run in progress, else of the next
}

// NewChecker returns a checker without checks.
func NewChecker(cfg CheckerConfig) *Checker {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Checker{cfg: cfg, log: cfg.Logger}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(&collector{c})
	}
	return c
}

// Register adds a check; it must be called before Open. The name is shown to
// strangers, so it says what is looked at and never names a node.
func (c *Checker) Register(name string, scope Scope, f CheckFunc) {
	c.checks = append(c.checks, &check{name: name, scope: scope, run: f, kick: make(chan struct{}, 1),
		ended: make(chan struct{})})
}

// Open starts all checks at once. Until a check has answered it fails every
// scope but live.
func (c *Checker) Open(ctx context.Context) error {
	if c.opened {
		return errors.New("health checker: opened twice")
	}
	c.opened = true
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	for _, one := range c.checks {
		c.wg.Go(func() { c.runLoop(run, one) })
	}
	return nil
}

// Close stops the checks. A check that ignores its context is left behind
// after Timeout and named in the error.
func (c *Checker) Close() error {
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(c.cfg.Timeout):
		for _, one := range c.checks {
			if !one.isIdle() {
				return fmt.Errorf("health check %s does not end", one.name)
			}
		}
		return nil
	}
}

// Kick runs the named checks now, all of them without names: for events that
// should show at once.
func (c *Checker) Kick(names ...string) {
	for _, one := range c.checks {
		wanted := len(names) == 0
		for _, n := range names {
			wanted = wanted || n == one.name
		}
		if !wanted {
			continue
		}
		signal.Send(one.kick)
	}
}

// Look runs all checks now and returns when each has answered, or ctx ends: for a report after a change that all of
// them are about.
func (c *Checker) Look(ctx context.Context) {
	var wg sync.WaitGroup
	for _, one := range c.checks {
		wg.Go(func() {
			if ended, runs := one.endOfRun(); runs { // perhaps from before the change
				awaitEnd(ctx, ended)
			}
			ended, _ := one.endOfRun()
			c.Kick(one.name)
			awaitEnd(ctx, ended)
		})
	}
	wg.Wait()
}

func awaitEnd(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// SetDraining makes the node unready for everything but live, at once.
func (c *Checker) SetDraining(on bool) {
	if c.draining.Swap(on) && !on {
		c.resumed.Store(time.Now().UnixNano())
	}
}

func (c *Checker) runLoop(ctx context.Context, one *check) {
	tick := time.NewTimer(backoff.Align(c.cfg.Interval))
	defer tick.Stop()
	for {
		c.runOnce(ctx, one)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(backoff.Align(c.cfg.Interval))
		case <-one.kick:
		}
	}
}

func (c *Checker) runOnce(ctx context.Context, one *check) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	one.beginRun(time.Now())
	r := one.run(ctx)
	if adapt := c.cfg.Adapt; adapt != nil {
		r.Reason, r.Hint = adapt(r.Reason), adapt(r.Hint)
	}
	if changed := one.finishRun(time.Now(), r); changed {
		c.log.Info("health check changed", "check", one.name, "level", r.Level.String(), "reason", r.Reason)
	}
}

func (k *check) beginRun(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = now
}

func (k *check) finishRun(now time.Time, r Result) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed = !k.known || r.Level != k.last.Level
	if changed {
		k.since = now
	}
	switch {
	case r.Level == Fail:
		k.well = time.Time{}
	case k.well.IsZero():
		k.well = now
	}
	k.running, k.known, k.last = time.Time{}, true, r
	close(k.ended)
	k.ended = make(chan struct{})
	return changed
}

// endOfRun returns a channel that is closed at the end of the run in progress or, when none runs, of the next one.
func (k *check) endOfRun() (ended <-chan struct{}, runs bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended, !k.running.IsZero()
}

func (k *check) isIdle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running.IsZero()
}

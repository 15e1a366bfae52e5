package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/once"
)

// Why a load was not taken.
var (
	// ErrPython: only the master itself can take it, or the service cannot take it now; nothing was fired.
	ErrPython = errors.New("events: only the salt-master itself can take it")
	// ErrMalformed: no master takes it.
	ErrMalformed = errors.New("events: malformed")
	// ErrUnsure: it was perhaps fired.
	ErrUnsure = errors.New("events: the master's bus stalled")
)

// Bounds of what waits for the bus, and of what goes to it at once.
const (
	maxWaiting  = 4096
	maxBytes    = 32 << 20
	batchLoads  = 256
	defaultRate = 2000 // events per second after a burst, about as many as the workers of a bare master let through
)

// Planner decides which events a load makes (jobcache.Cache).
type Planner interface {
	Plan(load []byte, f jobcache.Facts) (jobcache.Plan, error)
}

// Mode says whether events are fired here.
type Mode struct {
	Planner Planner // nil: no
	Reason  string  // why not
}

// Config configures a Service. Zero values take the defaults named.
type Config struct {
	Bus          jobcache.Bus
	Mode         Mode          // to begin with
	StallTimeout time.Duration // with a bus that stands still (5 s)
	// Rate is how many events are fired per second after Burst of them, so that subscribers keep up (2,000 and 4,000).
	// Returns have their own. Behind is how many events a subscriber may be behind before the master cuts it; 0: any
	// number.
	Rate, Burst, Behind int

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Service fires events. Create it with New, then Open; Close ends it.
type Service struct {
	c       Config
	metrics *metrics
	firer   *jobcache.Firer
	window  *once.Window
	mode    atomic.Pointer[Mode]
	queue   chan *waiting
	bytes   atomic.Int64 // of what is in queue

	mu     sync.RWMutex // held while something is put into queue
	opened bool
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// waiting is a load on its way to the bus.
type waiting struct {
	plan jobcache.Plan
	size int64
	done func(error)
}

// New checks the configuration; nothing runs before Open.
func New(c Config) (*Service, error) {
	if c.Bus == nil {
		return nil, fmt.Errorf("events: incomplete configuration")
	}
	c.StallTimeout = cmp.Or(c.StallTimeout, 5*time.Second)
	c.Rate, c.Burst = cmp.Or(c.Rate, defaultRate), cmp.Or(c.Burst, 2*defaultRate)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		c: c, window: once.NewWindow(once.Size), queue: make(chan *waiting, maxWaiting),
		firer: jobcache.NewFirer(jobcache.FirerConfig{
			Bus: c.Bus, Rate: float64(c.Rate), Burst: c.Burst, Behind: c.Behind, Logger: c.Logger,
		}),
	}
	s.metrics = newMetrics(c.Registerer, func() int { return len(s.queue) })
	s.Use(c.Mode)
	return s, nil
}

// Use changes the mode after a change of the master's options.
func (s *Service) Use(m Mode) { s.mode.Store(&m) }

// Native says whether events are fired here, and why not.
func (s *Service) Native() (ok bool, reason string) {
	m := s.mode.Load()
	return m.Planner != nil, m.Reason
}

// Open begins to fire. ctx ends nothing later.
func (s *Service) Open(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { s.runWorker(ctx) })
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	return nil
}

// Close fires what waits if the bus takes it at once, and gives up the rest.
func (s *Service) Close() error {
	s.mu.Lock()
	was := s.opened
	s.opened = false
	s.mu.Unlock()
	if was {
		close(s.queue) // nothing is put into it from now on
		timer := time.AfterFunc(closeGrace, s.cancel)
		s.wg.Wait()
		timer.Stop()
		s.cancel()
	}
	return nil
}

// closeGrace is how long Close waits for the bus.
const closeGrace = time.Second

// Take fires what a load makes. done is called once, from this goroutine or the service's, where it must not block:
// with what a master would answer, or with an error as the package says.
func (s *Service) Take(minion string, load []byte, received time.Time, done func(reply []byte, err error)) {
	mode := s.mode.Load()
	if mode.Planner == nil {
		done(nil, ErrPython)
		return
	}
	key := s.window.Key(minion, load)
	if !s.window.Claim(key, func(err error) { s.answerRepeated(err, done) }) {
		return
	}
	ended := func(reply []byte, err error) {
		settled := err
		if errors.Is(err, ErrUnsure) {
			settled = nil // never again
		}
		s.window.Settle(key, settled)
		s.metrics.countLoad(err)
		done(reply, err)
	}
	if len(load) > maxBytes { // it does not fit, and a plan may take several times as much
		ended(nil, ErrPython)
		return
	}
	plan, err := mode.Planner.Plan(load, jobcache.Facts{Received: received})
	python, deferred := errors.AsType[*jobcache.NeedsPython](err)
	switch {
	case deferred:
		s.c.Logger.Debug("event left to the salt-master", "minion", minion, "reason", python.Reason)
		ended(nil, ErrPython)
		return
	case err != nil:
		ended(nil, fmt.Errorf("%w: %w", ErrMalformed, err))
		return
	case len(plan.Jobs) > 0 || len(plan.Syndics) > 0:
		ended(nil, ErrPython) // a return, which is not for this service
		return
	case len(plan.Events) > s.batchEvents():
		s.c.Logger.Debug("event left to the salt-master", "minion", minion, "reason", "too many events", "count",
			len(plan.Events))
		ended(nil, ErrPython)
		return
	}
	// A list says once what stands before each of its tags: what waits is the plan, which may be many times the load.
	w := &waiting{plan: plan, size: int64(max(len(load), plan.Size)), done: func(err error) {
		if err != nil {
			ended(nil, err)
			return
		}
		ended(plan.Reply, nil)
	}}
	if !s.enqueueLoad(w) {
		s.c.Logger.Debug("event left to the salt-master", "minion", minion, "reason",
			"too many events wait for the bus, or this process is ending")
		ended(nil, ErrPython)
	}
}

// answerRepeated answers a load that has come twice.
func (s *Service) answerRepeated(err error, done func([]byte, error)) {
	if err != nil {
		done(nil, err)
		return
	}
	s.metrics.countDuplicate()
	done(answered, nil)
}

// answered is what a master answers to an event: None.
var answered = []byte{0xc0}

func (s *Service) enqueueLoad(w *waiting) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.opened || s.bytes.Load()+w.size > maxBytes {
		return false
	}
	select {
	case s.queue <- w:
		s.bytes.Add(w.size)
		return true
	default:
		return false
	}
}

// runWorker fires until the queue is closed and empty.
func (s *Service) runWorker(ctx context.Context) {
	for first := range s.queue {
		s.fireBatch(ctx, s.gatherBatch(first))
	}
}

// gatherBatch is a load and what else waits, as much as is fired together.
func (s *Service) gatherBatch(first *waiting) []*waiting {
	batch, events := append(make([]*waiting, 0, 16), first), len(first.plan.Events)
	for len(batch) < batchLoads && events < s.batchEvents() {
		select {
		case w, ok := <-s.queue:
			if !ok {
				return batch
			}
			batch, events = append(batch, w), events+len(w.plan.Events)
		default:
			return batch
		}
	}
	return batch
}

// batchEvents is how many events are fired together, and how many a load may have: at the pace of the bus they take
// half of StallTimeout. With more a bus that only keeps its pace would be taken for one that stands still.
func (s *Service) batchEvents() int { return int(float64(s.c.Rate) * s.c.StallTimeout.Seconds() / 2) }

// fireBatch hands a batch to the bus and says what became of each.
func (s *Service) fireBatch(ctx context.Context, batch []*waiting) {
	plans := make([]jobcache.Plan, len(batch))
	for i, w := range batch {
		s.bytes.Add(-w.size)
		plans[i] = w.plan
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.StallTimeout)
	defer cancel()
	done, err := s.firer.Fire(ctx, plans)
	for errors.Is(err, jobcache.ErrBusDown) {
		if s.firer.Offered() == 0 || !backoff.Sleep(ctx, busPause) { // what the bus has queued it takes when it is back
			break
		}
		done, err = s.firer.Fire(ctx, plans)
	}
	offered := s.firer.Offered()
	s.firer.Forget()
	if err != nil {
		s.c.Logger.Warn("events not fired", "count", len(batch)-done, "unsure", offered-done, "err", err)
	}
	for i, w := range batch {
		switch {
		case i < done:
			w.done(nil)
		case i < offered:
			w.done(ErrUnsure)
		default:
			w.done(ErrPython)
		}
	}
}

// busPause is how long the bus gets to come back.
const busPause = 20 * time.Millisecond

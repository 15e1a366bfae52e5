package catchup

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// ErrOlder says that a peer is of a version that cannot be pulled from.
var ErrOlder = errors.New("it runs an older version")

// Part is one sort of state. It has either Pull or Await.
type Part struct {
	Name string
	Off  string // why there is nothing to do; empty: there is
	// Pull fetches from one peer what is lacking here, and returns when nothing is.
	Pull func(ctx context.Context, from node.ID, tell func(Report)) error
	// Await returns when nothing is lacking here.
	Await  func(ctx context.Context, tell func(Report)) error
	Needed bool   // it is never given up
	Done   func() // called once, when it has caught up or was given up; may be nil
}

// Report is how far a part is.
type Report struct {
	Done, Total int64
	Unit        string  // what is counted; empty: items
	From        node.ID // of whom it is fetched, where a part finds its own peer
	Note        string  // what it is doing, or what is wrong
	Starved     bool
}

// Config is what a Runner needs.
type Config struct {
	Parts []Part
	// Peers are the other members that have a master: those that are there, the best to ask first, and those that seem not
	// to be, which are asked only when no other peer is there.
	Peers func() (there, absent []node.ID)

	StallTimeout time.Duration // without progress; 2 min
	AloneTimeout time.Duration // without progress and without peers; 10 s
	Silence      time.Duration // of a pull; StallTimeout
	Pause        time.Duration // between tries, doubled up to 2 s; 100 ms

	Logger *slog.Logger
}

// Runner brings parts up to date, once. Create it with New.
type Runner struct {
	cfg   Config
	log   *slog.Logger
	parts []*part
}

// New makes a Runner; nothing happens before Run.
func New(cfg Config) *Runner {
	cfg.StallTimeout = cmp.Or(cfg.StallTimeout, 2*time.Minute)
	cfg.AloneTimeout = cmp.Or(cfg.AloneTimeout, 10*time.Second)
	cfg.Silence = cmp.Or(cfg.Silence, cfg.StallTimeout)
	cfg.Pause = cmp.Or(cfg.Pause, 100*time.Millisecond)
	r := &Runner{cfg: cfg, log: cfg.Logger}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	for _, p := range cfg.Parts {
		r.parts = append(r.parts, &part{Part: p})
	}
	return r
}

// Run returns when all parts have caught up or were given up, or ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, p := range r.parts {
		p.startSync()
		wg.Go(func() {
			r.runPart(ctx, p)
			if p.Part.Done != nil {
				p.Part.Done()
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// Status tells how far all parts are, in the order of the configuration.
func (r *Runner) Status() []Status {
	out := make([]Status, 0, len(r.parts))
	for _, p := range r.parts {
		out = append(out, p.currentStatus())
	}
	return out
}

// runPart brings one part up to date, or gives it up.
func (r *Runner) runPart(ctx context.Context, p *part) {
	if p.Off != "" {
		p.endSync(StateOff, p.Off)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if p.Await != nil {
		err = r.awaitPart(ctx, p)
	} else {
		err = r.pullPart(ctx, p)
	}
	switch {
	case err == nil:
		st := p.endSync(StateDone, "")
		r.log.Info("caught up", "part", p.Name, "count", st.Done, "dur", time.Since(st.Since))
	case ctx.Err() == nil:
		p.endSync(StateGivenUp, err.Error())
		r.log.Warn("not caught up: serving with the present data", "part", p.Name, "reason", err)
	}
}

// awaitPart waits for a part that helps itself.
func (r *Runner) awaitPart(ctx context.Context, p *part) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Await(run, p.noteReport) }() // ends with run, before this function does
	look := time.NewTicker(r.cfg.Pause)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			if err := r.giveUpReason(p, p.isStarved()); err != nil {
				stop()
				<-ended
				return err
			}
		}
	}
}

// pullPart asks one peer after the other.
func (r *Runner) pullPart(ctx context.Context, p *part) error {
	pause := backoff.Backoff{Min: r.cfg.Pause, Max: maxPause}
	for {
		ask, absent := r.cfg.Peers()
		if len(ask)+len(absent) == 0 {
			return nil
		}
		if len(ask) == 0 {
			ask = absent // who has just started may not have heard of them yet
		}
		older := 0
		for _, from := range ask {
			err := r.pullFrom(ctx, p, from)
			if err == nil || ctx.Err() != nil {
				return err
			}
			if errors.Is(err, ErrOlder) {
				older++
			}
			r.log.Debug("not caught up yet", "part", p.Name, "node", from, "err", err)
		}
		if older > 0 && older == len(ask) {
			return nil // it catches up as nodes of their version do
		}
		if err := r.giveUpReason(p, true); err != nil {
			return err
		}
		if !pause.Wait(ctx) {
			return ctx.Err()
		}
	}
}

const maxPause = 2 * time.Second

// pullFrom asks one peer, for as long as something arrives. Pull bounds each of its questions.
func (r *Runner) pullFrom(ctx context.Context, p *part, from node.ID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.noteSource(from)
	silence := time.AfterFunc(r.cfg.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	err := p.Pull(ctx, from, func(rep Report) {
		silence.Reset(r.cfg.Silence)
		rep.From = from
		p.noteReport(rep)
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	p.noteError(err)
	return err
}

var errSilent = errors.New("it does not answer")

// giveUpReason says why a part is to be given up; nil when it is not.
func (r *Runner) giveUpReason(p *part, starved bool) error {
	if p.Needed {
		return nil
	}
	there, absent := r.cfg.Peers()
	idle, reason := p.idleTime()
	switch {
	case starved && len(there) == 0 && len(absent) > 0 && idle > r.cfg.AloneTimeout:
		return errors.New(cmp.Or(reason, "no other node with a salt-master answers"))
	case idle > r.cfg.StallTimeout:
		return errors.New(cmp.Or(reason, "no data arrived for too long"))
	}
	return nil
}

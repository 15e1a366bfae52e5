package jobcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/eventbus"
)

// ErrBusDown: the master's event bus is not there; its events wait.
var ErrBusDown = errors.New("jobcache: the master's event bus is down")

// Bus is the master's event bus (eventbus.Bus).
type Bus interface {
	FireTrimmed(ctx context.Context, tag string, data []byte) error
	Takes() bool
	// Flush waits until the master has taken what was fired.
	Flush(ctx context.Context) error
}

// FirerConfig configures a Firer. Zero values take the defaults named.
type FirerConfig struct {
	Bus    Bus
	Rate   float64 // events per second after a burst (2,000)
	Burst  int     // events fired at once (4,000)
	Behind int     // how many events a subscriber may be behind before the master cuts it; 0: any number
	Logger *slog.Logger
	Now    func() time.Time
}

const (
	// slowest is how many events a second of one job a subscriber has to take, to be cut by no number of them. A command
	// line that waits for returns takes about 600.
	slowest = 500
	// pacedJobs is how many jobs have a pace of their own, the latest ones.
	pacedJobs = 16
)

// Firer fires plans' events at a pace at which a subscriber of the bus keeps its connection. It belongs to one
// goroutine.
type Firer struct {
	c      FirerConfig
	all    pace
	jobs   []jobPace
	queued int // plans at the start of those offered next whose events the bus has, but not yet the master
	part   int // and events of the plan after them
}

// NewFirer returns a firer with a full burst.
func NewFirer(c FirerConfig) *Firer {
	c.Rate, c.Burst = cmp.Or(c.Rate, 2000), cmp.Or(c.Burst, 4000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Behind > 0 {
		c.Burst = max(min(c.Burst, c.Behind*2/5), 1)
	}
	return &Firer{c: c, all: newPace(c.Rate, c.Burst, c.Now())}
}

// jobPace is that of one job. Thousands of minions return at once for the same one, and there is a command line that
// hears all of them; what minions return by themselves comes one by one.
type jobPace struct {
	jid string
	pace
}

// paceOf is a plan's own pace, nil when it has none.
func (f *Firer) paceOf(p *Plan) *pace {
	if f.c.Behind <= 0 || len(p.Jobs) == 0 || p.Unasked() {
		return nil
	}
	jid := p.Jobs[0].JID
	for i := range f.jobs {
		if f.jobs[i].jid == jid {
			return &f.jobs[i].pace
		}
	}
	if len(f.jobs) == pacedJobs {
		f.jobs = f.jobs[:copy(f.jobs, f.jobs[1:])]
	}
	f.jobs = append(f.jobs, jobPace{jid, newPace(slowest, max(f.c.Behind*3/5, 1), f.c.Now())})
	return &f.jobs[len(f.jobs)-1].pace
}

// pace is a token bucket.
type pace struct {
	rate, room, tokens float64
	last               time.Time
}

func newPace(rate float64, burst int, now time.Time) pace {
	return pace{rate: rate, room: float64(burst), tokens: float64(burst), last: now}
}

// wait fills the bucket and says how long until there is a token in it.
func (p *pace) wait(now time.Time) time.Duration {
	p.tokens = min(p.tokens+now.Sub(p.last).Seconds()*p.rate, p.room)
	p.last = now
	if p.tokens >= 1 {
		return 0
	}
	return time.Duration((1-p.tokens)/p.rate*float64(time.Second)) + time.Millisecond
}

// Fire hands over the events of plans in order and returns how many plans are done with: their events have been taken
// by the master, so that none is lost when this process is killed. After an error (ErrBusDown, and ctx's) the rest is
// to be offered again, from the first that is not done. An event that no bus takes (its tag holds an empty line) is
// logged and left out.
func (f *Firer) Fire(ctx context.Context, plans []Plan) (done int, err error) {
	if !f.c.Bus.Takes() {
		return 0, ErrBusDown
	}
	for ; f.queued < len(plans); f.queued, f.part = f.queued+1, 0 {
		var own *pace
		if f.part == 0 {
			own = f.paceOf(&plans[f.queued])
		}
		for events := plans[f.queued].Events; f.part < len(events); f.part++ {
			if err := f.fireEvent(ctx, events[f.part], own); err != nil {
				return 0, err
			}
			own = nil // those of failed states cost a command line little
		}
	}
	if err := f.c.Bus.Flush(ctx); errors.Is(err, eventbus.ErrBusDown) {
		return 0, ErrBusDown
	} else if err != nil {
		return 0, fmt.Errorf("fire events: %w", err)
	}
	f.queued = 0
	return len(plans), nil
}

// Offered is how many of the plans of a Fire that failed the bus may have, the ones that are done included.
func (f *Firer) Offered() int {
	if f.part > 0 {
		return f.queued + 1
	}
	return f.queued
}

// Forget makes the next Fire begin anew: the plans offered before will not be offered again.
func (f *Firer) Forget() { f.queued, f.part = 0, 0 }

func (f *Firer) fireEvent(ctx context.Context, e Event, own *pace) error {
	if err := f.takeToken(ctx, own); err != nil {
		return err
	}
	for {
		err := f.c.Bus.FireTrimmed(ctx, e.Tag, e.Data)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, eventbus.ErrBusFull):
			if !f.c.Bus.Takes() {
				return ErrBusDown
			}
			if !backoff.Sleep(ctx, 20*time.Millisecond) {
				return ctx.Err()
			}
		case ctx.Err() != nil, errors.Is(err, eventbus.ErrBusClosed):
			return err
		default:
			f.c.Logger.Warn("event left out", "err", err)
			return nil
		}
	}
}

// takeToken waits until the pace of all events and that of a job, which may be nil, let one go.
func (f *Firer) takeToken(ctx context.Context, own *pace) error {
	for {
		now := f.c.Now()
		longest := f.all.wait(now)
		if own != nil {
			longest = max(longest, own.wait(now))
		}
		if longest > 0 {
			if !backoff.Sleep(ctx, longest) {
				return ctx.Err()
			}
			continue
		}
		if f.all.tokens--; own != nil {
			own.tokens--
		}
		return nil
	}
}

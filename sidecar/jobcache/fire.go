package jobcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"saltclusterd/sidecar/localmaster"
)

// ErrBusDown: the master's event bus is not there; its events wait.
var ErrBusDown = errors.New("jobcache: the master's event bus is down")

// Bus is the master's event bus (localmaster.Bus).
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
	Logger *slog.Logger
	Now    func() time.Time
}

// Firer fires plans' events at a pace at which a subscriber of the bus keeps its connection: 3008 cuts one that is
// 10,000 events behind. It belongs to one goroutine.
type Firer struct {
	c      FirerConfig
	tokens float64
	last   time.Time
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
	return &Firer{c: c, tokens: float64(c.Burst), last: c.Now()}
}

// Fire hands over the events of plans in order and returns how many plans are done with: their events have been taken by
// the master, so that none is lost when this process is killed. After an error (ErrBusDown, and ctx's) the rest is to be
// offered again, from the first that is not done. An event that no bus takes (its tag holds an empty line) is logged and
// left out.
func (f *Firer) Fire(ctx context.Context, plans []Plan) (done int, err error) {
	if !f.c.Bus.Takes() {
		return 0, ErrBusDown
	}
	for ; f.queued < len(plans); f.queued, f.part = f.queued+1, 0 {
		for events := plans[f.queued].Events; f.part < len(events); f.part++ {
			if err := f.fire(ctx, events[f.part]); err != nil {
				return 0, err
			}
		}
	}
	if err := f.c.Bus.Flush(ctx); err != nil {
		return 0, fmt.Errorf("fire events: %w", err)
	}
	f.queued = 0
	return len(plans), nil
}

// Forget makes the next Fire begin anew: the plans offered before will not be offered again.
func (f *Firer) Forget() { f.queued, f.part = 0, 0 }

func (f *Firer) fire(ctx context.Context, e Event) error {
	if err := f.token(ctx); err != nil {
		return err
	}
	for {
		err := f.c.Bus.FireTrimmed(ctx, e.Tag, e.Data)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, localmaster.ErrBusFull):
			if !f.c.Bus.Takes() {
				return ErrBusDown
			}
			if err := pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		case ctx.Err() != nil, errors.Is(err, localmaster.ErrBusClosed):
			return err
		default:
			f.c.Logger.Warn("event left out", "err", err)
			return nil
		}
	}
}

// token waits for the pace.
func (f *Firer) token(ctx context.Context) error {
	for {
		now := f.c.Now()
		f.tokens = min(f.tokens+now.Sub(f.last).Seconds()*f.c.Rate, float64(f.c.Burst))
		f.last = now
		if f.tokens >= 1 {
			f.tokens--
			return nil
		}
		if err := pause(ctx, time.Duration((1-f.tokens)/f.c.Rate*float64(time.Second))+time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

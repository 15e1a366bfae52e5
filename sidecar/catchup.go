package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// catchUpTimeout bounds how long a request waits for news; without a quorum there are none.
	catchUpTimeout = 500 * time.Millisecond
	// catchUpBlind is that bound while there have been none.
	catchUpBlind = 100 * time.Millisecond
	// catchUpEvery keeps strangers from making us ask the leader all the time: they wait that long after a question.
	catchUpEvery = 20 * time.Millisecond
	// catchUpSoonest and catchUpPause are for those whose key is accepted, whose sign-ins come in storms: they wait catchUpPause times as
	// long as the question took, from catchUpSoonest to catchUpEvery. So a storm spends a tenth of its time on questions however far away
	// the leader is, and a leader who has much to do is asked less.
	catchUpSoonest = 2 * time.Millisecond
	catchUpPause   = 9
	// maxCatchingUp bounds the requests that wait for news. One more is refused, or, a sign-in, dropped: deciding it by what
	// is known would let in, under a flood, whose key was removed a moment ago.
	maxCatchingUp = 8192
)

// catchUp lets requests wait together until this node knows what the cluster knows.
type catchUp struct {
	ask   func(context.Context) error
	hurry chan struct{} // has a token when one that may ask soon waits

	mu      sync.Mutex
	waiting []func(behind bool)
	running bool
	blind   bool // the last question was not answered: no quorum
}

// ErrBehind means that this node lacks something that the cluster has decided: what it knows must not decide who may
// come in. See Keys.CatchUp.
var ErrBehind = errors.New("this node is behind the cluster")

func newCatchUp(ask func(context.Context) error) *catchUp {
	return &catchUp{ask: ask, hurry: make(chan struct{}, 1)}
}

// add has f called when the node has caught up, or could not; false when too many wait already. soon is for whom the
// cluster knows. f must not take long, for all others wait for it. behind tells it that the cluster has decided something
// that this node lacks; without a quorum it is false, and what is known decides.
func (c *catchUp) add(ctx context.Context, wg *sync.WaitGroup, soon bool, f func(behind bool)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxCatchingUp || ctx.Err() != nil {
		return false
	}
	c.waiting = append(c.waiting, f)
	if soon {
		select {
		case c.hurry <- struct{}{}:
		default:
		}
	}
	if !c.running {
		c.running = true
		wg.Go(func() { c.run(ctx) })
	}
	return true
}

// size is how many requests wait for the next question.
func (c *catchUp) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func (c *catchUp) run(ctx context.Context) {
	for {
		batch := c.take()
		if len(batch) == 0 {
			return
		}
		timeout := catchUpTimeout
		if c.blind {
			timeout = catchUpBlind
		}
		began := time.Now()
		asking, cancel := context.WithTimeout(ctx, timeout)
		err := c.ask(asking)
		cancel()
		behind := errors.Is(err, ErrBehind)
		c.blind = err != nil && !behind
		took := time.Since(began)
		for _, f := range batch {
			f(behind)
		}
		c.pause(ctx, soonest(took))
	}
}

// take is those that wait; when there are none the goroutine ends.
func (c *catchUp) take() []func(bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting
	c.waiting, c.running = nil, len(batch) > 0
	select {
	case <-c.hurry:
	default:
	}
	return batch
}

// soonest is how long after a question that took so long the next may be asked for those whom the cluster knows.
func soonest(took time.Duration) time.Duration {
	return min(max(catchUpPause*took, catchUpSoonest), catchUpEvery)
}

// pause waits until the next question may be asked: a while for anybody, and catchUpEvery for strangers.
func (c *catchUp) pause(ctx context.Context, soon time.Duration) {
	t := time.NewTimer(soon)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	t.Reset(catchUpEvery - soon)
	select {
	case <-t.C:
	case <-c.hurry:
	case <-ctx.Done():
	}
}

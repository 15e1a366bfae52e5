package eventbus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"saltclusterd/signal"
)

// ErrBusDown: the master does not take events now; what was queued waits.
var ErrBusDown = errors.New("eventbus: the master takes no events")

const (
	// reachTimeout bounds the question whether anybody listens on the pull socket.
	reachTimeout = time.Second
	// settleTimeout bounds the wait for a master's workers when its bus is back (Options.Serving).
	settleTimeout = 30 * time.Second
)

// flow counts events from the queue to the master.
type flow struct {
	queued, sent uint64
	moved        chan struct{} // closed and replaced when sent has grown or the connection broke
	connected    bool          // the last write went well
	away         bool          // since then it could not be reached, and the master's workers have not been waited for
	losses       uint64        // how often it could not be reached
}

// Takes reports whether the master takes events: the last write went well, or its pull socket can be connected to. A
// master that ended a moment ago may still look as if it did.
func (b *Bus) Takes() bool {
	b.mu.Lock()
	ctx, connected := b.ctx, b.flow.connected
	b.mu.Unlock()
	if connected || ctx == nil {
		return connected
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	c, err := b.pull.dialBus(ctx)
	if err != nil {
		b.noteLost()
		return false
	}
	_ = c.Close()
	return !b.isSettling()
}

// noteLost notes that the bus could not be reached.
func (b *Bus) noteLost() {
	if b.o.Serving != nil {
		b.mu.Lock()
		b.flow.away = true
		b.flow.losses++
		b.mu.Unlock()
	}
}

// isSettling says whether the bus, which has just been reached, is not to be used yet, and sees to it that it will be.
func (b *Bus) isSettling() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flow.away {
		signal.Send(b.back)
	}
	return b.flow.away
}

// awaitWorkers waits for the master's workers whenever the bus is back. When it was lost meanwhile, they may have been
// another master's than the one that is there now, which is waited for in turn.
func (b *Bus) awaitWorkers() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.closing: // what is left is fired at once
			b.allowUse(math.MaxUint64)
			return
		case <-b.back:
		}
		b.mu.Lock()
		away, losses := b.flow.away, b.flow.losses
		b.mu.Unlock()
		if !away { // signalled before an earlier wait was over
			continue
		}
		ctx, cancel := context.WithTimeout(b.ctx, settleTimeout)
		stop := context.AfterFunc(b.receiving, cancel)
		b.o.Serving(ctx)
		stop()
		cancel()
		b.allowUse(losses)
	}
}

// allowUse lets the bus be used, unless it was lost more often.
func (b *Bus) allowUse(losses uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flow.losses <= losses {
		b.flow.away = false
	}
	b.flow.notifyMoved()
}

// notifyMoved wakes who waits for a change. Wants the bus's mu.
func (f *flow) notifyMoved() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// waitSettled waits until the bus, which has just been reached, may be used.
func (b *Bus) waitSettled() error {
	for b.isSettling() {
		b.mu.Lock()
		moved, away := b.flow.moved, b.flow.away
		b.mu.Unlock()
		if !away {
			break
		}
		select {
		case <-moved:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
	return nil
}

// Flush waits until the master has taken every event that was queued before. Errors: ErrBusDown when it turns out not
// to take any (the events stay queued), ErrBusClosed, and ctx's.
func (b *Bus) Flush(ctx context.Context) error {
	b.urgent.Add(1)
	defer b.urgent.Add(-1)
	b.endLinger()
	b.mu.Lock()
	target := b.flow.queued
	for {
		sent, connected, moved, closed := b.flow.sent, b.flow.connected, b.flow.moved, b.closed || b.ctx == nil
		b.mu.Unlock()
		switch {
		case sent >= target:
			return nil
		case closed:
			return ErrBusClosed
		case !connected && !b.Takes():
			return ErrBusDown
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("flush events: %w", ctx.Err())
		case <-b.ctx.Done():
			return ErrBusClosed
		}
		b.mu.Lock()
	}
}

// noteProgress notes that n events were written, or that the connection broke.
func (b *Bus) noteProgress(n int, connected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow.sent += uint64(n)
	b.flow.connected = connected
	b.flow.notifyMoved()
}

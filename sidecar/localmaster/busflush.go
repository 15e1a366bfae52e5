package localmaster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrBusDown: the master does not take events now; what was queued waits.
var ErrBusDown = errors.New("localmaster: the master takes no events")

// reachTimeout bounds the question whether anybody listens on the pull socket.
const reachTimeout = time.Second

// flow counts events from the queue to the master.
type flow struct {
	queued, sent uint64
	moved        chan struct{} // closed and replaced when sent has grown or the connection broke
	connected    bool          // the last write went well
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
	c, err := b.pull.dial(ctx)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Flush waits until the master has taken every event that was queued before. Errors: ErrBusDown when it turns out not to
// take any (the events stay queued), ErrBusClosed, and ctx's.
func (b *Bus) Flush(ctx context.Context) error {
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

// progress notes that n events were written, or that the connection broke.
func (b *Bus) progress(n int, connected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow.sent += uint64(n)
	b.flow.connected = connected
	close(b.flow.moved)
	b.flow.moved = make(chan struct{})
}

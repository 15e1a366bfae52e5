package edge

import (
	"context"
	"fmt"
	"time"
)

// quietFor is the silence after which a request connection counts as between two requests. A peer that asks in the very
// moment in which we close loses that request until its own timeout, so that one in the middle of something is left
// alone.
const quietFor = time.Second

// drainLook is how often connections that were busy are looked at again.
const drainLook = 50 * time.Millisecond

// Drain stops listening and closes the subscribers there are in steps, spread
// evenly over the given time, so that they arrive elsewhere in steps too.
// When ctx ends it stops; Close ends the rest, Resume takes newcomers again. An
// edge that was never opened has no subscribers to close.
func (e *PubEdge) Drain(ctx context.Context, over time.Duration) {
	if e.cancel == nil {
		return
	}
	e.door.turning.Lock()
	e.door.shut()
	all := e.retire()
	e.door.turning.Unlock()
	spread(ctx, len(all), over, e.ctx.Done(), nil, func(i int) {
		s := all[i]
		s.mu.Lock()
		s.held = false
		s.flush()
		s.mu.Unlock()
		s.cut(ReasonDrained)
	})
}

// Resume listens again after Drain, on the same addresses.
func (e *PubEdge) Resume(ctx context.Context) error {
	e.door.turning.Lock()
	defer e.door.turning.Unlock()
	if e.cancel == nil || e.ctx.Err() != nil {
		return fmt.Errorf("pub edge: %w", ErrClosed)
	}
	if !e.isDraining() {
		return nil
	}
	if err := e.door.open(ctx); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	e.connMu.Lock()
	e.draining = false
	e.connMu.Unlock()
	e.accept()
	return nil
}

func (e *PubEdge) isDraining() bool {
	e.connMu.Lock()
	defer e.connMu.Unlock()
	return e.draining
}

// accept lets connections in as long as the door is open.
func (e *PubEdge) accept() {
	for _, ln := range e.door.listeners() {
		e.g.Go(func() error { return e.door.accept(e.ctx, ln) })
	}
}

// Drain stops listening and closes the connections there are, spread evenly
// over the given time: each when all its requests are answered and it has been
// quiet for a second. It returns when none is left or ctx ends; Close ends the
// rest, Resume takes newcomers again.
func (e *ReqEdge) Drain(ctx context.Context, over time.Duration) {
	if e.cancel == nil {
		return
	}
	e.door.turning.Lock()
	e.door.shut()
	all := e.retire()
	e.door.turning.Unlock()
	var busy []*reqConn
	spread(ctx, len(all), over, e.ctx.Done(), nil, func(i int) {
		if !all[i].letGo(clock()) {
			busy = append(busy, all[i])
		}
	})
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for len(busy) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-e.ctx.Done():
			return
		case <-look.C:
		}
		left := busy[:0]
		for _, c := range busy {
			if !c.letGo(clock()) {
				left = append(left, c)
			}
		}
		clear(busy[len(left):])
		busy = left
	}
}

// Resume listens again after Drain, on the same addresses.
func (e *ReqEdge) Resume(ctx context.Context) error {
	e.door.turning.Lock()
	defer e.door.turning.Unlock()
	if e.cancel == nil || e.closing {
		return fmt.Errorf("req edge: %w", ErrClosed)
	}
	if !e.isDraining() {
		return nil
	}
	if err := e.door.open(ctx); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	e.mu.Lock()
	e.draining = false
	e.mu.Unlock()
	e.accept()
	return nil
}

func (e *ReqEdge) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// accept lets connections in as long as the door is open.
func (e *ReqEdge) accept() {
	for _, ln := range e.door.listeners() {
		e.g.Go(func() error { return e.door.accept(e.ctx, ln) })
	}
}

// letGo cuts a connection between two requests; false when it is not.
func (c *reqConn) letGo(now int64) bool {
	if c.reason() != reasonNone {
		return true
	}
	if c.slots.used() > 0 || c.paused.Load() || c.midway.Load() != 0 || !c.written() {
		return false
	}
	// a peer that waited for its answer may ask again at once
	if now-max(c.heard.Load(), c.answered.Load()) < int64(quietFor) {
		return false
	}
	c.cut(ReasonDrained)
	return true
}

// written tells whether the socket has taken all output.
func (c *reqConn) written() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out) == 0
}

package edge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"saltclusterd/sidecar/edge/netconn"
)

// quietFor is the silence after which a request connection counts as between two requests. A peer that asks in the very
// moment in which we close loses that request until its own timeout, so that one in the middle of something is left
// alone.
const quietFor = time.Second

// drainLook is how often connections that were busy are looked at again.
const drainLook = 50 * time.Millisecond

// Drain stops listening and closes the subscribers there are in steps, spread
// evenly over the given time, so that they arrive elsewhere in steps too. Those
// that may be signing in are closed when they have had the time for it.
// When ctx ends it stops; Close ends the rest, Resume takes newcomers again. An
// edge that was never opened has no subscribers to close.
func (e *PubEdge) Drain(ctx context.Context, over time.Duration) {
	if e.cancel == nil {
		return
	}
	e.drainedBy.Store(netconn.Clock() + int64(over))
	e.listener.Changing.Lock()
	e.listener.Shut()
	all := e.conns.Retire()
	e.listener.Changing.Unlock()
	if letGoAll(ctx, e.ctx, all, over); ctx.Err() == nil {
		e.endRotation() // there is none left to be moved
	}
}

// letGo cuts a subscriber; false when it may be signing in.
func (s *sub) letGo(now int64) bool {
	s.Mu.Lock()
	if s.held && s.q.size() > 0 {
		s.unhold(now)
	}
	s.flush()
	signsIn := s.moved != 0 && now-s.moved < int64(s.edge.cfg.SignInTime)
	s.Mu.Unlock()
	if signsIn && s.Reason() == netconn.ReasonNone {
		return false
	}
	s.Cut(netconn.ReasonDrained)
	return true
}

// letGoAll has connections let go, spread evenly over the given time, and those that were busy again and again. It
// returns when none is left, or ctx or edge ends.
func letGoAll[C interface{ letGo(now int64) bool }](ctx, edge context.Context, all []C, over time.Duration) {
	var busy []C
	spread(ctx, len(all), over, edge.Done(), nil, func(i int) {
		if !all[i].letGo(netconn.Clock()) {
			busy = append(busy, all[i])
		}
	})
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for len(busy) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-edge.Done():
			return
		case <-look.C:
		}
		busy = slices.DeleteFunc(busy, func(c C) bool { return c.letGo(netconn.Clock()) })
	}
}

// Resume listens again after Drain, on the same addresses.
func (e *PubEdge) Resume(ctx context.Context) error {
	e.listener.Changing.Lock()
	defer e.listener.Changing.Unlock()
	if e.cancel == nil || e.ctx.Err() != nil {
		return fmt.Errorf("pub edge: %w", ErrClosed)
	}
	if !e.conns.Draining() {
		return nil
	}
	if err := e.listener.Open(ctx); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	e.drainedBy.Store(0)
	e.conns.Resume()
	e.accept()
	return nil
}

// accept lets connections in as long as the listener is open.
func (e *PubEdge) accept() {
	for _, ln := range e.listener.Listeners() {
		e.g.Go(func() error { return e.listener.Accept(e.ctx, ln) })
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
	e.listener.Changing.Lock()
	e.listener.Shut()
	all := e.conns.Retire()
	e.listener.Changing.Unlock()
	letGoAll(ctx, e.ctx, all, over)
}

// Resume listens again after Drain, on the same addresses.
func (e *ReqEdge) Resume(ctx context.Context) error {
	e.listener.Changing.Lock()
	defer e.listener.Changing.Unlock()
	if e.cancel == nil || e.closing {
		return fmt.Errorf("req edge: %w", ErrClosed)
	}
	if !e.conns.Draining() {
		return nil
	}
	if err := e.listener.Open(ctx); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	e.conns.Resume()
	e.accept()
	return nil
}

// accept lets connections in as long as the listener is open.
func (e *ReqEdge) accept() {
	for _, ln := range e.listener.Listeners() {
		e.g.Go(func() error { return e.listener.Accept(e.ctx, ln) })
	}
}

// letGo cuts a connection between two requests; false when it is not.
func (c *reqConn) letGo(now int64) bool {
	if c.Reason() != netconn.ReasonNone {
		return true
	}
	if c.slots.Used() > 0 || c.paused.Load() || c.share.Progress.Midway() || !c.written() {
		return false
	}
	// a peer that waited for its answer may ask again at once
	if now-max(c.Heard(), c.answered.Load()) < int64(quietFor) {
		return false
	}
	c.Cut(netconn.ReasonDrained)
	return true
}

// written tells whether the socket has taken all output.
func (c *reqConn) written() bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return len(c.out) == 0
}

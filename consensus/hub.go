package consensus

import (
	"context"
	"sync"

	"saltclusterd/signal"
)

// hub tells who wants to know that the state changed. It never blocks the
// publisher; a subscriber that is behind finds one notification, not many.
type hub struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	subs    map[chan struct{}]struct{}
	closed  bool
}

func newHub() *hub {
	return &hub{changed: make(chan struct{}), subs: map[chan struct{}]struct{}{}}
}

func (h *hub) notifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	close(h.changed)
	h.changed = make(chan struct{})
	for c := range h.subs {
		signal.Send(c)
	}
}

// addWatcher subscribes until ctx ends; the channel is closed then.
func (h *hub) addWatcher(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(c)
		return c
	}
	h.subs[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, ok := h.subs[c]; ok {
			delete(h.subs, c)
			close(c)
		}
	})
	return c
}

// waitUntil returns nil as soon as cond holds; cond is asked again after each change.
func (h *hub) waitUntil(ctx context.Context, cond func() bool) error {
	for {
		h.mu.Lock()
		changed, closed := h.changed, h.closed
		h.mu.Unlock()
		if cond() {
			return nil
		}
		if closed {
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	close(h.changed)
	for c := range h.subs {
		delete(h.subs, c)
		close(c)
	}
}

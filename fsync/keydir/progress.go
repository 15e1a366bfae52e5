package keydir

import (
	"context"
	"sync"
	"sync/atomic"
)

// work is how far the writing of many keys is.
type work struct{ done, total atomic.Int64 }

func (w *work) startWork(n int) {
	if w != nil && n > 0 {
		w.done.Store(0)
		w.total.Store(int64(n))
	}
}

func (w *work) addDone(n int) {
	if w != nil {
		w.done.Add(int64(n))
	}
}

// progress is a revision that only grows, and those who wait for it.
type progress struct {
	mu      sync.Mutex
	rev     uint64
	closed  bool
	changed chan struct{} // closed at the next change; nil while no caller waits
}

func (p *progress) currentRev() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rev
}

func (p *progress) hasReached(rev uint64) bool { return p.currentRev() >= rev }

func (p *progress) setRev(rev uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rev > p.rev {
		p.rev = rev
		p.wakeWaiters()
	}
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wakeWaiters()
}

func (p *progress) wakeWaiters() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *progress) waitForRev(ctx context.Context, rev uint64) error {
	for {
		p.mu.Lock()
		if p.rev >= rev {
			p.mu.Unlock()
			return nil
		}
		if p.closed {
			p.mu.Unlock()
			return ErrClosed
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

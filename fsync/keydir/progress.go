package keydir

import (
	"context"
	"sync"
)

// progress is a revision that only grows, and those who wait for it.
type progress struct {
	mu      sync.Mutex
	rev     uint64
	closed  bool
	changed chan struct{} // closed at the next change; nil while nobody waits
}

func (p *progress) get() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rev
}

func (p *progress) reached(rev uint64) bool { return p.get() >= rev }

func (p *progress) set(rev uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rev > p.rev {
		p.rev = rev
		p.wake()
	}
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake()
}

func (p *progress) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *progress) wait(ctx context.Context, rev uint64) error {
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

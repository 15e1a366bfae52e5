package lifecycle

import "sync"

// Tenure is the running membership of a process, and whether there is another one to begin.
type Tenure[M any] struct {
	mu      sync.Mutex
	current *M
	joined  chan struct{} // closed when a membership was written
}

// NewTenure returns a Tenure without a membership.
func NewTenure[M any]() *Tenure[M] { return &Tenure[M]{joined: make(chan struct{})} }

// Current returns the running membership, nil when there is none.
func (t *Tenure[M]) Current() *M {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// Set sets the running membership; nil: it has ended.
func (t *Tenure[M]) Set(m *M) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = m
}

// Joined is closed when a membership was written.
func (t *Tenure[M]) Joined() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.joined
}

// NotifyJoined closes Joined.
func (t *Tenure[M]) NotifyJoined() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.joined:
	default:
		close(t.joined)
	}
}

// AwaitJoin has Joined wait for another membership.
func (t *Tenure[M]) AwaitJoin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined = make(chan struct{})
}

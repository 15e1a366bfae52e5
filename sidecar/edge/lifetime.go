package edge

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// ErrClosed is why a component ends that was closed.
var ErrClosed = errors.New("edge closed")

// lifetime is what an edge has from Open to Close.
type lifetime struct {
	g      *errgroup.Group
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // goroutines of connections
	shut   sync.Once
	failed error // what Close returns
}

// begin starts a life that ends with Close, not with ctx.
func (l *lifetime) begin(ctx context.Context) {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.g, l.ctx = errgroup.WithContext(run)
}

// Done is closed when the edge has ended, on its own or by Close. It wants an
// edge that was opened.
func (l *lifetime) Done() <-chan struct{} { return l.ctx.Done() }

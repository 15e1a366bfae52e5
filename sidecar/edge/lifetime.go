package edge

import (
	"context"
	"errors"
	"sync"

	"saltclusterd/sidecar/edge/front"

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
	front  *front.Front   // has more of them
	shut   sync.Once
	failed error // what Close returns
}

// begin starts a life that ends with Close, not with ctx.
func (l *lifetime) begin(ctx context.Context) {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.g, l.ctx = errgroup.WithContext(run)
}

// awaitConns returns when the goroutines of all connections have ended.
func (l *lifetime) awaitConns() {
	l.wg.Wait()
	l.front.Wait()
}

// Done is closed when the edge has ended, on its own or by Close. It wants an
// edge that was opened.
func (l *lifetime) Done() <-chan struct{} { return l.ctx.Done() }

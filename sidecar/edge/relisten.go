package edge

import (
	"context"
	"fmt"
)

// ListenOn makes the edge listen on these addresses and no others. Connections that there are stay. Addresses that
// cannot be listened on are left out, and are in the error: the caller tries again. While the edge drains, the
// addresses are noted for Resume.
func (e *PubEdge) ListenOn(ctx context.Context, addrs []string) error {
	e.listener.Changing.Lock()
	defer e.listener.Changing.Unlock()
	if e.cancel == nil || e.ctx.Err() != nil {
		return fmt.Errorf("pub edge: %w", ErrClosed)
	}
	added, err := e.listener.ListenOn(ctx, addrs)
	for _, ln := range added {
		e.g.Go(func() error { return e.listener.Accept(e.ctx, ln) })
	}
	return err
}

// ListenOn is as that of a PubEdge.
func (e *ReqEdge) ListenOn(ctx context.Context, addrs []string) error {
	e.listener.Changing.Lock()
	defer e.listener.Changing.Unlock()
	if e.cancel == nil || e.closing {
		return fmt.Errorf("req edge: %w", ErrClosed)
	}
	added, err := e.listener.ListenOn(ctx, addrs)
	for _, ln := range added {
		e.g.Go(func() error { return e.listener.Accept(e.ctx, ln) })
	}
	return err
}

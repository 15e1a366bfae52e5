package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// ListenOn makes the edge listen on these addresses and no others. Connections that there are stay. Addresses that
// cannot be listened on are left out, and are in the error: the caller tries again. While the edge drains, the
// addresses are noted for Resume.
func (e *PubEdge) ListenOn(ctx context.Context, addrs []string) error {
	e.door.turning.Lock()
	defer e.door.turning.Unlock()
	if e.cancel == nil || e.ctx.Err() != nil {
		return fmt.Errorf("pub edge: %w", ErrClosed)
	}
	added, err := e.door.listenOn(ctx, addrs)
	for _, ln := range added {
		e.g.Go(func() error { return e.door.accept(e.ctx, ln) })
	}
	return err
}

// ListenOn is as that of a PubEdge.
func (e *ReqEdge) ListenOn(ctx context.Context, addrs []string) error {
	e.door.turning.Lock()
	defer e.door.turning.Unlock()
	if e.cancel == nil || e.closing {
		return fmt.Errorf("req edge: %w", ErrClosed)
	}
	added, err := e.door.listenOn(ctx, addrs)
	for _, ln := range added {
		e.g.Go(func() error { return e.door.accept(e.ctx, ln) })
	}
	return err
}

// errFrost is why the addresses are left as they are during a takeover.
var errFrost = errors.New("edge: connections are being handed over")

// listenOn closes the listeners of addresses that are not among addrs and opens those that are missing. Wants turning,
// so that it does not meet stop.
func (d *door) listenOn(ctx context.Context, addrs []string) (added []net.Listener, err error) {
	if d.frost.on() {
		return nil, errFrost
	}
	d.mu.Lock()
	shut, kept := d.isShut, map[string]net.Listener{}
	if !shut {
		for i, a := range d.addrs {
			kept[a] = d.lns[i]
		}
	}
	d.mu.Unlock()
	if shut {
		d.addrs = slices.Clone(addrs)
		return nil, nil
	}
	var now []string
	var lns []net.Listener
	var failed []error
	for _, a := range addrs {
		ln := kept[a]
		if ln == nil {
			var one error
			if ln, one = d.listener(ctx, a); one != nil {
				failed = append(failed, fmt.Errorf("listen on %s: %w", a, one))
				continue
			}
			added = append(added, ln)
		}
		delete(kept, a)
		now, lns = append(now, a), append(lns, ln)
	}
	d.mu.Lock()
	d.addrs, d.lns = now, lns
	d.mu.Unlock()
	for _, ln := range kept {
		_ = ln.Close()
	}
	return added, errors.Join(failed...)
}

// listener makes one listener.
func (d *door) listener(ctx context.Context, addr string) (net.Listener, error) {
	listen := d.listen
	if listen == nil {
		listen = (&net.ListenConfig{KeepAlive: -1}).Listen
	}
	ln, err := listen(ctx, "tcp", addr)
	if err == nil {
		bequeath(ln)
	}
	return ln, err
}

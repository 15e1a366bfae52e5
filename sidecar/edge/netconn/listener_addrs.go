package netconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// errFrozenListener is why the addresses are left as they are during a takeover.
var errFrozenListener = errors.New("edge: connections are being handed over")

// ListenOn closes the listeners of addresses that are not among addrs and opens those that are missing. Wants
// Changing, so that it does not meet Stop.
func (l *Listener) ListenOn(ctx context.Context, addrs []string) (added []net.Listener, err error) {
	if l.cfg.Freezer.On() {
		return nil, errFrozenListener
	}
	l.mu.Lock()
	shut, kept := l.isShut, map[string]net.Listener{}
	if !shut {
		for i, a := range l.addrs {
			kept[a] = l.lns[i]
		}
	}
	l.mu.Unlock()
	if shut {
		l.addrs = slices.Clone(addrs)
		return nil, nil
	}
	var now []string
	var lns []net.Listener
	var failed []error
	for _, a := range addrs {
		ln := kept[a]
		if ln == nil {
			var one error
			if ln, one = l.listener(ctx, a); one != nil {
				failed = append(failed, fmt.Errorf("listen on %s: %w", a, one))
				continue
			}
			added = append(added, ln)
		}
		delete(kept, a)
		now, lns = append(now, a), append(lns, ln)
	}
	l.mu.Lock()
	l.addrs, l.lns = now, lns
	l.mu.Unlock()
	for _, ln := range kept {
		_ = ln.Close()
	}
	return added, errors.Join(failed...)
}

// listener makes one listener.
func (l *Listener) listener(ctx context.Context, addr string) (net.Listener, error) {
	listen := l.cfg.Listen
	if listen == nil {
		listen = (&net.ListenConfig{KeepAlive: -1}).Listen
	}
	ln, err := listen(ctx, "tcp", addr)
	if err == nil {
		setKeepAlive(ln)
	}
	return ln, err
}

package lab

import (
	"context"
	"net"
	"runtime"
	"sync"
)

// dialers is how many connections of a Dialer may be in the making at a time.
const dialers = 16

// Dialer makes connections from a host at less cost than Host.Dial, which enters the host anew for each.
type Dialer struct {
	orders chan dialOrder
	ended  chan struct{}
	once   sync.Once
}

type dialOrder struct {
	ctx  context.Context
	addr string
	done chan dialed
}

type dialed struct {
	c   net.Conn
	err error
}

// NewDialer returns one; it has to be closed.
func (h *Host) NewDialer() (*Dialer, error) {
	d := &Dialer{orders: make(chan dialOrder), ended: make(chan struct{})}
	entered := make(chan error)
	for range dialers {
		go d.work(h.ns, entered)
		if err := <-entered; err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// work dials on a thread of its own inside the namespace, which ends with it.
func (d *Dialer) work(ns string, entered chan<- error) {
	if ns != "" {
		runtime.LockOSThread()
		err := enterNamespace(ns)
		entered <- err
		if err != nil {
			return
		}
	} else {
		entered <- nil
	}
	for {
		select {
		case <-d.ended:
			return
		case o := <-d.orders:
			c, err := (&net.Dialer{}).DialContext(o.ctx, "tcp", o.addr)
			o.done <- dialed{c, err}
		}
	}
}

// Dial connects to a TCP address.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	o := dialOrder{ctx, addr, make(chan dialed, 1)}
	select {
	case d.orders <- o:
		r := <-o.done
		return r.c, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.ended:
		return nil, net.ErrClosed
	}
}

// Close ends the threads; connections live on.
func (d *Dialer) Close() { d.once.Do(func() { close(d.ended) }) }

package peer

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// ways knows which members this node does not reach directly, and looks for when it does again.
type ways struct {
	mu       sync.Mutex
	closed   bool
	indirect map[node.ID]*indirect
}

// indirect is a member that is not reached directly.
type indirect struct{ tunnelled bool } // a tunnel to it was made

func (w *ways) isIndirect(id node.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.indirect[id] != nil
}

// close keeps Suspect from starting anything.
func (w *ways) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// setDirect forgets that a member is not reached directly, and reports whether a tunnel to it was made meanwhile.
func (w *ways) setDirect(id node.ID) (tunnelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.indirect[id]
	delete(w.indirect, id)
	return d != nil && d.tunnelled
}

// noteTunnel notes that a tunnel was made; true: the first one since.
func (w *ways) noteTunnel(id node.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.indirect[id]
	if d == nil || d.tunnelled {
		return false
	}
	d.tunnelled = true
	return true
}

// Suspect says that a member does not answer although its host does not refuse connections. From now on connections may
// go through other members, until one to it can be made again.
func (p *Port) Suspect(id node.ID) {
	p.ways.mu.Lock()
	defer p.ways.mu.Unlock()
	if p.ways.closed || p.ways.indirect[id] != nil {
		return
	}
	p.ways.indirect[id] = &indirect{}
	p.wg.Go(func() { p.awaitDirect(id) })
}

// Indirect reports whether a member is not reached directly, as far as is known.
func (p *Port) Indirect(id node.ID) bool { return p.ways.isIndirect(id) }

// Tunnelled lists the members that this node reaches through others only, in any order.
func (p *Port) Tunnelled() (through []node.ID) {
	p.ways.mu.Lock()
	defer p.ways.mu.Unlock()
	for id, d := range p.ways.indirect {
		if d.tunnelled {
			through = append(through, id)
		}
	}
	return through
}

const (
	minDirectPause = 100 * time.Millisecond
	maxDirectPause = time.Second
)

// awaitDirect returns when a connection to the member can be made, or its host says that it does not run.
func (p *Port) awaitDirect(id node.ID) {
	pause := backoff.Backoff{Min: minDirectPause, Max: maxDirectPause}
	for p.ctx.Err() == nil {
		c, err := p.dialMember(p.ctx, id, ProtoHTTP)
		if err == nil {
			_ = Cut(c)
		}
		if p.ctx.Err() == nil && !isCutOff(err) {
			if p.ways.setDirect(id) {
				p.log.Info("a member is reached directly again", "node", id)
				for _, c := range p.reg.tunnelledConns(id, ProtoRaft) { // peer RPC ends its own
					_ = c.Close()
				}
			}
			return
		}
		pause.Wait(p.ctx)
	}
}

// isCutOff reports whether dialling failed because of the way to the member: a member that does not run is refused by
// its host, and one that does not want the connection says so.
func isCutOff(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	for _, no := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// wayTransport sends a request directly, or through another member while its receiver is not reached directly.
type wayTransport struct {
	ways             *ways
	direct, indirect http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *wayTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if id, err := node.ParseID(req.URL.Hostname()); err == nil && t.ways.isIndirect(id) {
		return t.indirect.RoundTrip(req)
	}
	return t.direct.RoundTrip(req)
}

// CloseIdleConnections is what http.Client calls.
func (t *wayTransport) CloseIdleConnections() {
	for _, next := range []http.RoundTripper{t.direct, t.indirect} {
		if c, ok := next.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

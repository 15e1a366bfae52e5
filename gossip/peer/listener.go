package peer

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Listener returns the listener for one protocol; its connections are *tls.Conn of admitted members. There is at
// most one at a time; connections of a protocol without a listener are refused. Closing it affects no other protocol.
func (p *Port) Listener(proto string) (net.Listener, error) {
	if !slices.Contains([]string{ProtoRaft, ProtoGossip, ProtoHTTP}, proto) {
		return nil, fmt.Errorf("listen for %q: not a protocol of the peer port", proto)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners[proto] != nil {
		return nil, fmt.Errorf("listen for %s: it has a listener already", proto)
	}
	l := &listener{
		port: p, proto: proto, done: make(chan struct{}),
		slots: make(chan struct{}, p.cfg.Limits.Queue), queue: make(chan *tls.Conn, p.cfg.Limits.Queue),
	}
	p.listeners[proto] = l
	return l, nil
}

func (p *Port) openListener(proto string) *listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listeners[proto]
}

func (p *Port) closeListeners() {
	for _, proto := range []string{ProtoRaft, ProtoGossip, ProtoHTTP} {
		if l := p.openListener(proto); l != nil {
			_ = l.Close()
		}
	}
}

// listener queues the admitted connections of one protocol. A slot is taken before the greeting is sent, so that a
// greeted connection always finds room.
type listener struct {
	port  *Port
	proto string
	slots chan struct{}
	queue chan *tls.Conn
	done  chan struct{}

	mu     sync.Mutex
	closed bool
}

// reserveSlot takes a slot, waiting for at most limit.
func (l *listener) reserveSlot(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return true
	case <-l.done:
	case <-timer.C:
	}
	return false
}

func (l *listener) releaseSlot() { <-l.slots }

// queueConn queues a connection in its reserved slot; false: the listener closed meanwhile.
func (l *listener) queueConn(t *tls.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.queue <- t // never waits: there are as many places as slots
	return true
}

// Accept returns the next admitted connection, or net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case t := <-l.queue:
		l.releaseSlot()
		return t, nil
	case <-l.done:
		return nil, fmt.Errorf("accept %s: %w", l.proto, net.ErrClosed)
	}
}

// Close ends Accept and cuts connections that were not accepted yet.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	l.port.removeListener(l)
	for {
		select {
		case t := <-l.queue:
			_ = Cut(t)
		default:
			return nil
		}
	}
}

func (p *Port) removeListener(l *listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners[l.proto] == l {
		delete(p.listeners, l.proto)
	}
}

// Addr returns the address others reach the port on.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.port.advertise) }

package consensus

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// maxPool is how many idle raft connections per peer are kept.
const maxPool = 3

// stream lets raft's transport use the Port. Raft addresses are node ids.
//
// It keeps track of the connections, because raft's transport does not end the
// accepted ones when it is closed: their goroutines would read on.
type stream struct {
	net.Listener
	port Port
	self node.ID

	mu     sync.Mutex
	conns  map[*streamConn]struct{}
	closed bool
}

func newStream(ln net.Listener, port Port, self node.ID) *stream {
	return &stream{Listener: ln, port: port, self: self, conns: map[*streamConn]struct{}{}}
}

// Addr is what raft takes for its own address.
func (s *stream) Addr() net.Addr { return nodeAddr(s.self) }

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.track(c)
}

// Dial implements raft.StreamLayer.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.port.Dial(ctx, node.ID(to), Proto)
	if err != nil {
		return nil, err
	}
	return s.track(c)
}

// Close stops accepting and ends every connection.
func (s *stream) Close() error {
	err := s.Listener.Close()
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Keys(s.conns))
	clear(s.conns)
	s.mu.Unlock()
	var wg sync.WaitGroup // a TLS connection may take seconds to say goodbye
	for _, c := range open {
		wg.Go(func() { _ = c.Conn.Close() })
	}
	wg.Wait()
	return err
}

func (s *stream) track(c net.Conn) (net.Conn, error) {
	t := &streamConn{Conn: c, s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	s.conns[t] = struct{}{}
	return t, nil
}

type streamConn struct {
	net.Conn
	s *stream
}

func (c *streamConn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}

type nodeAddr node.ID

func (nodeAddr) Network() string  { return Proto }
func (a nodeAddr) String() string { return string(a) }

func addrOf(id node.ID) raft.ServerAddress { return raft.ServerAddress(id) }

package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"

	"saltclusterd/gossip/node"
)

var errCut = errors.New("fabric: no way there")

// fabric connects the nodes of a test over loopback TCP and can cut the ways
// between them.
type fabric struct {
	mu    sync.Mutex
	addrs map[node.ID]string
	nodes map[node.ID]*Node
	group map[node.ID]int // nodes of different groups do not reach each other
	conns map[*fabricConn]struct{}

	// dropReplies is the share of forwarded requests, of 100, whose answer is
	// lost after they were handled.
	dropReplies int
}

func newFabric() *fabric {
	return &fabric{addrs: map[node.ID]string{}, nodes: map[node.ID]*Node{}, group: map[node.ID]int{},
		conns: map[*fabricConn]struct{}{}}
}

// split puts the given nodes into a group of their own and cuts what crosses.
func (f *fabric) split(ids ...node.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.group[id] = 1
	}
	for c := range f.conns {
		if f.group[c.a] != f.group[c.b] {
			_ = c.Conn.Close()
			delete(f.conns, c)
		}
	}
}

func (f *fabric) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.group)
}

func (f *fabric) drop(share int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropReplies = share
}

// peer finds a node that from can reach.
func (f *fabric) peer(from, to node.ID) (*Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[to]
	if n == nil || f.group[from] != f.group[to] {
		return nil, fmt.Errorf("%s → %s: %w", from, to, errCut)
	}
	return n, nil
}

func (f *fabric) forward(from node.ID) func(context.Context, node.ID, []byte) ([]byte, error) {
	return func(ctx context.Context, to node.ID, req []byte) ([]byte, error) {
		n, err := f.peer(from, to)
		if err != nil {
			return nil, err
		}
		b, err := n.HandleForward(ctx, from, req)
		f.mu.Lock()
		lost := rand.IntN(100) < f.dropReplies
		f.mu.Unlock()
		if _, cut := f.peer(from, to); cut != nil || lost {
			return nil, errCut
		}
		return b, err
	}
}

func (f *fabric) stats(from node.ID) func(context.Context, node.ID) (PeerStats, error) {
	return func(_ context.Context, to node.ID) (PeerStats, error) {
		n, err := f.peer(from, to)
		if err != nil {
			return PeerStats{}, err
		}
		return n.LocalStats(), nil
	}
}

func (f *fabric) alive(from node.ID) func(node.ID) bool {
	return func(id node.ID) bool {
		_, err := f.peer(from, id)
		return err == nil
	}
}

// fabricPort is the Port of one node.
type fabricPort struct {
	f    *fabric
	self node.ID
}

func (p fabricPort) Listener(string) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.addrs[p.self] = ln.Addr().String()
	return ln, nil
}

func (p fabricPort) Dial(ctx context.Context, id node.ID, _ string) (net.Conn, error) {
	if _, err := p.f.peer(p.self, id); err != nil {
		return nil, err
	}
	p.f.mu.Lock()
	addr := p.f.addrs[id]
	p.f.mu.Unlock()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &fabricConn{Conn: raw, f: p.f, a: p.self, b: id}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.f.group[p.self] != p.f.group[id] {
		return nil, errors.Join(errCut, raw.Close())
	}
	p.f.conns[c] = struct{}{}
	return c, nil
}

type fabricConn struct {
	net.Conn
	f    *fabric
	a, b node.ID
}

func (c *fabricConn) Close() error {
	c.f.mu.Lock()
	delete(c.f.conns, c)
	c.f.mu.Unlock()
	return c.Conn.Close()
}

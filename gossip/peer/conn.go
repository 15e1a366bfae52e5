package peer

import (
	"crypto/tls"
	"net"
	"sync"

	"saltclusterd/gossip/node"
	"saltclusterd/nowait"
)

// conn is a tcp connection below TLS which the registry can find and cut. It sits below, not above, because net/http
// insists on a plain *tls.Conn for HTTP/2.
type conn struct {
	*nowait.Conn // TLS reads and writes one record at a time
	reg          *registry
	once         sync.Once
	err          error

	through node.ID // the member that it goes through; empty: it is direct

	// Set by admission, before the connection is handed to anyone.
	id    node.ID
	fp    node.Fingerprint
	proto string
}

// Close closes the tcp connection at once and forgets it.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.reg.dropConn(c)
		c.err = c.Conn.Close()
	})
	return c.err
}

// Remote returns the member at the other end of a connection which came from a Listener or from Dial.
func Remote(c net.Conn) (node.ID, bool) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return "", false
	}
	raw, ok := t.NetConn().(*conn)
	if !ok || raw.id == "" {
		return "", false
	}
	return raw.id, true
}

// Cut closes a connection at once. Close of a *tls.Conn says goodbye first, which takes up to five seconds when the
// other side does not read.
func Cut(c net.Conn) error {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.Close()
}

// direction tells who dialled.
type direction int

const (
	inbound direction = iota
	outbound
)

// registry knows every open connection of the port. Admission and revocation take the same lock.
type registry struct {
	mu      sync.Mutex
	closed  bool
	perNode int
	perRPC  int
	all     map[*conn]direction
	byFP    map[node.Fingerprint]map[*conn]struct{}
	count   map[node.Fingerprint]*admitted
}

// admitted counts the connections of a certificate.
type admitted struct {
	by  [2]int // direction
	rpc int    // inbound ones that carry requests
}

func (r *registry) init(l Limits) {
	r.perNode, r.perRPC = l.ConnsPerNode, l.RPCConnsPerNode
	r.all = map[*conn]direction{}
	r.byFP = map[node.Fingerprint]map[*conn]struct{}{}
	r.count = map[node.Fingerprint]*admitted{}
}

// trackConn registers a tcp connection before its handshake, so that closing the port ends it. It closes c when the
// port is closed.
func (r *registry) trackConn(c net.Conn, d direction) (*conn, error) {
	t := &conn{Conn: nowait.New(c), reg: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return nil, ErrClosed
	}
	r.all[t] = d
	return t, nil
}

// admitConn runs check (the question to the roster) and registers the connection under the fingerprint by which the
// roster knows it, both under the lock that revoke takes: a connection is either refused, or found by the next revoke.
func (r *registry) admitConn(c *conn, proto string, check func() (node.ID, node.Fingerprint, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, open := r.all[c]
	if r.closed || !open {
		return ErrClosed
	}
	id, fp, err := check()
	if err != nil {
		return err
	}
	n := r.count[fp]
	if n == nil {
		n = new(admitted)
		r.count[fp], r.byFP[fp] = n, map[*conn]struct{}{}
	}
	rpc := d == inbound && proto == ProtoHTTP
	if n.by[d] >= r.perNode || rpc && n.rpc >= r.perRPC {
		return ErrTooMany
	}
	n.by[d]++
	if rpc {
		n.rpc++
	}
	c.id, c.fp, c.proto = id, fp, proto
	r.byFP[fp][c] = struct{}{}
	return nil
}

func (r *registry) dropConn(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.all[c]
	if !ok {
		return
	}
	delete(r.all, c)
	if _, ok := r.byFP[c.fp][c]; !ok {
		return
	}
	delete(r.byFP[c.fp], c)
	r.count[c.fp].by[d]--
	if d == inbound && c.proto == ProtoHTTP {
		r.count[c.fp].rpc--
	}
	if len(r.byFP[c.fp]) == 0 {
		delete(r.byFP, c.fp)
		delete(r.count, c.fp)
	}
}

func (r *registry) revokeCert(fp node.Fingerprint) int {
	r.mu.Lock()
	cut := make([]*conn, 0, len(r.byFP[fp]))
	for c := range r.byFP[fp] {
		cut = append(cut, c)
	}
	r.mu.Unlock()
	for _, c := range cut {
		_ = c.Close()
	}
	return len(cut)
}

// tunnelledConns returns the connections of a protocol to a member that go through another one.
func (r *registry) tunnelledConns(id node.ID, proto string) (found []*conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all {
		if c.id == id && c.proto == proto && c.through != "" {
			found = append(found, c)
		}
	}
	return found
}

// tunnelledTo returns the members to which there are connections through others.
func (r *registry) tunnelledTo() map[node.ID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[node.ID]bool{}
	for c := range r.all {
		if c.id != "" && c.through != "" {
			found[c.id] = true
		}
	}
	return found
}

// hasDirect reports whether this node has a connection to a member at the address that the roster has.
func (r *registry) hasDirect(e node.Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, d := range r.all {
		if d == outbound && c.id == e.ID && c.proto != ProtoTunnel && c.through == "" && c.fp == e.Fingerprint &&
			c.RemoteAddr().String() == e.Addr.String() {
			return true
		}
	}
	return false
}

// admittedCerts returns the certificates with admitted connections.
func (r *registry) admittedCerts() []node.Fingerprint {
	r.mu.Lock()
	defer r.mu.Unlock()
	fps := make([]node.Fingerprint, 0, len(r.byFP))
	for fp := range r.byFP {
		fps = append(fps, fp)
	}
	return fps
}

// countConns returns the number of all connections and of the admitted ones.
func (r *registry) countConns() (all, admitted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.byFP {
		admitted += len(m)
	}
	return len(r.all), admitted
}

func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	cut := make([]*conn, 0, len(r.all))
	for c := range r.all {
		cut = append(cut, c)
	}
	r.mu.Unlock()
	for _, c := range cut {
		_ = c.Close()
	}
}

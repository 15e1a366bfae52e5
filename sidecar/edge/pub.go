package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"saltclusterd/sidecar/edge/front"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire/wsframe"
	"saltclusterd/sidecar/zmtp"
)

// PubEdge serves the publish port. See the package documentation.
type PubEdge struct {
	lifetime
	cfg      PubConfig
	metrics  *metrics
	cutLog   netconn.CutLog
	listener *netconn.Listener
	freezer  *netconn.Freezer
	hello    []byte
	ping     [transports]*chunk
	unread   [transports]*chunk // in place of ping

	conns       netconn.Set[*sub]
	taken       []*sub // taken over, not served yet
	newcomers   newcomers
	shards      []*shard
	turn        atomic.Uint32 // which shard gets the next connection
	subscribers atomic.Int64
	blocked     atomic.Int64
	delivered   atomic.Uint64

	publications
	moves
}

// moves is what has subscribers move to another generation.
type moves struct {
	rotating sync.Mutex // one Rotate at a time
	rotation *rotation
	// drainedBy is the clock when the last drain has let go of all but those which may be signing in; 0: none.
	drainedBy atomic.Int64
}

// publications is what was published, for both ends of publishing and rotating.
type publications struct {
	mu         sync.Mutex // the innermost lock
	cond       sync.Cond  // a shard has walked, or the edge is closed
	opened     bool       // workers are running
	closed     bool
	frozen     bool        // Publish waits
	cur, prev  *generation // prev: while a rotation is under way
	seq        uint64
	pos        int64 // bytes published, all generations' bodies taken as cur's
	waiting    int   // Publish calls that wait for shards
	lastRecord *record
}

// NewPubEdge checks a configuration.
func NewPubEdge(cfg PubConfig) (*PubEdge, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Registerer, "pub")
	if err != nil {
		return nil, fmt.Errorf("pub edge: %w", err)
	}
	e := &PubEdge{
		cfg: cfg, metrics: m, cutLog: netconn.CutLog{Logger: cfg.Logger},
		hello:     zmtp.AppendReady(zmtp.AppendGreeting(nil), "PUB", ""),
		ping:      [transports]*chunk{ZeroMQ: encodedPing(cfg), WS: fixed(wsframe.AppendPing(nil))},
		freezer:   netconn.NewFreezer(),
		newcomers: newcomers{arrived: make(chan struct{}, 1)},
	}
	e.front = front.New(front.Config{TLS: cfg.Served.TLS, Turns: cfg.Served.Turns, HandshakeTimeout: cfg.HandshakeTimeout})
	for t := range e.unread {
		e.unread[t] = encodings[t].message(unread)
	}
	e.lastRecord = &record{}
	e.cond.L = &e.mu
	e.cur = e.newGeneration(0)
	e.listener = netconn.NewListener(netconn.ListenerConfig{Addrs: cfg.Addrs, Listen: cfg.Listen, Freezer: e.freezer,
		MaxConns: cfg.MaxConns, MaxPerAddr: cfg.MaxConnsPerAddr, Proxies: cfg.Proxies, Logger: cfg.Logger,
		Metrics: m.Metrics, Admit: e.admit})
	for range cfg.Shards {
		e.shards = append(e.shards, newShard(e))
	}
	return e, errors.Join(
		gauge(cfg.Registerer, "pub", "connections", "Open connections.", func() float64 { return float64(e.listener.Count()) }),
		gauge(cfg.Registerer, "pub", "subscribers", "Connections with a subscription.",
			func() float64 { return float64(e.subscribers.Load()) }),
		gauge(cfg.Registerer, "pub", "blocked_subscribers", "Subscribers whose socket is full.",
			func() float64 { return float64(e.blocked.Load()) }))
}

func (e *PubEdge) newGeneration(number uint64) *generation {
	return &generation{number: number, messages: e.cfg.QueueMessages, bytes: e.cfg.QueueBytes}
}

// Open listens. The edge lives until Close, not until ctx ends.
func (e *PubEdge) Open(ctx context.Context) error {
	if err := e.listener.Open(ctx); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	e.begin(ctx)
	for _, h := range e.shards {
		e.g.Go(h.work)
	}
	e.accept()
	e.mu.Lock()
	e.opened = true
	e.mu.Unlock()
	e.serveTaken()
	return nil
}

// Addr lists the addresses listened on.
func (e *PubEdge) Addr() []net.Addr { return e.listener.Addr() }

// Close closes every connection at once: see Drain for the gentle way. It
// returns what ended the edge if that was something else. An edge that was
// never opened has nothing to close.
func (e *PubEdge) Close() error {
	if e.cancel != nil {
		e.shut.Do(func() { e.failed = e.shutDown() })
	}
	return e.failed
}

func (e *PubEdge) shutDown() error {
	e.listener.Changing.Lock()
	e.listener.Shut()
	e.cancel(ErrClosed)
	e.listener.Changing.Unlock()
	e.mu.Lock()
	e.closed = true
	e.cond.Broadcast()
	e.mu.Unlock()
	if e.freezer.Freezing() {
		e.Thaw()
	}
	e.endRotation()
	for _, s := range e.conns.Retire() {
		s.Cut(netconn.ReasonClosed)
	}
	e.awaitConns()
	if err := e.g.Wait(); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	return nil
}

// admit starts a connection.
func (e *PubEdge) admit(a netconn.Accepted) {
	s := &sub{edge: e, shard: e.shards[int(e.turn.Add(1))%len(e.shards)], since: netconn.Clock()}
	start := func() {
		e.wg.Add(1)
		go s.serve()
	}
	if s.Init(a) != nil || !e.conns.Add(s, start) {
		a.Refuse()
	}
}

func (e *PubEdge) forget(s *sub) {
	e.conns.Remove(s)
	s.Leave()
}

// count notes what was written to subscribers.
func (e *PubEdge) count(messages, bytes int) {
	e.metrics.Sent(bytes)
	if messages > 0 {
		e.delivered.Add(uint64(messages))
		e.metrics.delivered.Add(float64(messages))
	}
}

// Stats tells what the edge is doing.
func (e *PubEdge) Stats() PubStats {
	e.mu.Lock()
	st := PubStats{Published: e.seq, Generation: e.cur.number}
	if e.prev != nil && e.rotation != nil {
		st.OnPrevious = int(e.rotation.left.Load())
	}
	e.mu.Unlock()
	st.Conns, st.Subscribers, st.Blocked = e.listener.Count(), int(e.subscribers.Load()), int(e.blocked.Load())
	st.Delivered, st.Cut = e.delivered.Load(), e.metrics.Lagging()
	return st
}

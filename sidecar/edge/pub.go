package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"saltclusterd/sidecar/zmtp"
)

// PubEdge serves the publish port. See the package documentation.
type PubEdge struct {
	cfg    PubConfig
	met    *metrics
	cry    complaints
	door   door
	frost  *frost
	hello  []byte
	ping   *chunk
	unread *chunk // in place of ping

	g      *errgroup.Group
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // goroutines of connections

	shards      []*shard
	turn        atomic.Uint32 // which shard gets the next connection
	subscribers atomic.Int64
	blocked     atomic.Int64
	delivered   atomic.Uint64

	// mu guards the feeds, both ends of publishing and rotating. It is the
	// innermost lock.
	mu         sync.Mutex
	cond       sync.Cond // a shard has walked, or the edge is closed
	opened     bool      // workers are running
	closed     bool
	frozen     bool  // Publish waits
	cur, prev  *feed // prev: while a rotation is under way
	seq        uint64
	pos        int64 // bytes published, all generations' bodies taken as cur's
	waiting    int   // Publish calls that wait for shards
	lastRecord *record

	rotating sync.Mutex // one Rotate at a time
	rotation *rotation

	connMu   sync.Mutex
	conns    map[*sub]struct{}
	taken    []*sub // taken over, not served yet
	draining bool

	newMu     sync.Mutex // an innermost lock, too
	newcomers []Newcomer
	moved     []Newcomer
	arrived   chan struct{} // holds one

	shut   sync.Once
	failed error // what Close returns
}

// NewPubEdge checks a configuration.
func NewPubEdge(cfg PubConfig) (*PubEdge, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	met, err := newMetrics(cfg.Registerer, "pub")
	if err != nil {
		return nil, fmt.Errorf("pub edge: %w", err)
	}
	e := &PubEdge{
		cfg: cfg, met: met, cry: complaints{log: cfg.Logger},
		hello:      zmtp.AppendReady(zmtp.AppendGreeting(nil), "PUB", ""),
		ping:       encodedPing(cfg),
		unread:     fixed(zmtp.AppendMessage(nil, unread)),
		lastRecord: &record{},
		conns:      make(map[*sub]struct{}),
		frost:      newFrost(),
		arrived:    make(chan struct{}, 1),
	}
	e.cond.L = &e.mu
	e.cur = e.newFeed(0)
	e.door = door{addrs: slices.Clone(cfg.Addrs), listen: cfg.Listen, frost: e.frost, maxConns: cfg.MaxConns,
		maxPerAddr: cfg.MaxConnsPerAddr,
		proxies:    cfg.Proxies,
		log:        cfg.Logger, met: met, admit: e.admit}
	for range cfg.Shards {
		e.shards = append(e.shards, newShard(e))
	}
	return e, errors.Join(
		gauge(cfg.Registerer, "pub", "connections", "Open connections.", func() float64 { return float64(e.door.count()) }),
		gauge(cfg.Registerer, "pub", "subscribers", "Connections with a subscription.",
			func() float64 { return float64(e.subscribers.Load()) }),
		gauge(cfg.Registerer, "pub", "blocked_subscribers", "Subscribers whose socket is full.",
			func() float64 { return float64(e.blocked.Load()) }))
}

func (e *PubEdge) newFeed(gen uint64) *feed {
	return newFeed(gen, e.cfg.QueueMessages, e.cfg.QueueBytes)
}

// Open listens. The edge lives until Close, not until ctx ends.
func (e *PubEdge) Open(ctx context.Context) error {
	if err := e.door.open(ctx); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	e.cancel = cancel
	e.g, e.ctx = errgroup.WithContext(run)
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

// Done is closed when the edge has ended, on its own or by Close. It wants an
// edge that was opened.
func (e *PubEdge) Done() <-chan struct{} { return e.ctx.Done() }

// Addr lists the addresses listened on.
func (e *PubEdge) Addr() []net.Addr { return e.door.listening() }

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
	e.door.turning.Lock()
	e.door.shut()
	e.cancel(ErrClosed)
	e.door.turning.Unlock()
	e.mu.Lock()
	e.closed = true
	e.cond.Broadcast()
	e.mu.Unlock()
	if e.frost.state.Load() == freezing {
		e.Thaw()
	}
	e.endRotation()
	for _, s := range e.retire() {
		s.cut(ReasonClosed)
	}
	e.wg.Wait()
	if err := e.g.Wait(); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	return nil
}

// retire turns draining on and lists the connections there are.
func (e *PubEdge) retire() []*sub {
	e.connMu.Lock()
	defer e.connMu.Unlock()
	e.draining = true
	all := make([]*sub, 0, len(e.conns))
	for s := range e.conns {
		all = append(all, s)
	}
	return all
}

// admit starts a connection.
func (e *PubEdge) admit(tcp *net.TCPConn, remote netip.AddrPort, h *herald) {
	s := &sub{edge: e, shard: e.shards[int(e.turn.Add(1))%len(e.shards)], since: clock()}
	if err := s.init(tcp, remote, h, &e.cfg.Limits, e.frost); err != nil {
		_ = tcp.Close()
		e.door.leave(s.counted)
		return
	}
	e.connMu.Lock()
	defer e.connMu.Unlock()
	if e.draining {
		_ = tcp.Close()
		e.door.leave(s.counted)
		return
	}
	e.conns[s] = struct{}{}
	e.wg.Add(1)
	go s.serve(false)
}

func (e *PubEdge) forget(s *sub) {
	e.connMu.Lock()
	delete(e.conns, s)
	e.connMu.Unlock()
	e.door.leave(s.counted)
	s.stance.still.Store(true) // for good
	e.frost.stir()
}

// count notes what was written to subscribers.
func (e *PubEdge) count(messages, bytes int) {
	e.met.sent.Add(float64(bytes))
	if messages > 0 {
		e.delivered.Add(uint64(messages))
		e.met.delivered.Add(float64(messages))
	}
}

// Stats tells what the edge is doing.
func (e *PubEdge) Stats() PubStats {
	e.mu.Lock()
	st := PubStats{Published: e.seq, Generation: e.cur.gen}
	if e.prev != nil && e.rotation != nil {
		st.OnPrevious = int(e.rotation.left.Load())
	}
	e.mu.Unlock()
	st.Conns, st.Subscribers, st.Blocked = e.door.count(), int(e.subscribers.Load()), int(e.blocked.Load())
	st.Delivered, st.Cut = e.delivered.Load(), e.met.cuts.Load()
	return st
}

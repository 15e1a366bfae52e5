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
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/sidecar/zmtp"
)

// ErrClosed is why a component ends that was closed.
var ErrClosed = errors.New("edge closed")

// ReqEdge serves the request port. See the package documentation.
type ReqEdge struct {
	cfg    ReqConfig
	met    *metrics
	cry    complaints
	door   door
	frost  *frost
	slots  gate // requests in flight
	blames blames
	mem    *memory
	hello  []byte

	unread atomic.Int64 // bytes of answers that their peers do not read

	g      *errgroup.Group
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	conns    map[*reqConn]struct{}
	taken    []*reqConn // taken over, not served yet
	draining bool
	writers  atomic.Int64   // connections with output waiting
	wg       sync.WaitGroup // goroutines of connections
	drained  chan struct{}  // closed when readers need wait for no answer any more
	closing  bool           // Close has begun; guarded by door.turning
	shut     sync.Once
	failed   error // what Close returns

	heldMu  sync.Mutex
	held    []heldAnswer            // given while frozen, in order
	pass    func(Answer)            // after Hand: answers go there
	owed    atomic.Int64            // requests written down without their answers
	foreign map[foreignKey]*Request // taken over without their answers
}

// ReqStats is what a ReqEdge is doing.
type ReqStats struct {
	Conns    int   // connections, those in handshake included
	InFlight int   // requests without an answer
	Writers  int   // connections which have not read their answers yet
	Memory   int64 // bytes of incomplete and unanswered requests
	Unread   int64 // bytes of answers waiting for those who asked
}

// NewReqEdge checks a configuration.
func NewReqEdge(cfg ReqConfig) (*ReqEdge, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	met, err := newMetrics(cfg.Registerer, "req")
	if err != nil {
		return nil, fmt.Errorf("req edge: %w", err)
	}
	e := &ReqEdge{
		cfg: cfg, met: met, cry: complaints{log: cfg.Logger},
		slots:   gate{limit: cfg.MaxInFlight},
		hello:   zmtp.AppendReady(zmtp.AppendGreeting(nil), "ROUTER", ""),
		conns:   make(map[*reqConn]struct{}),
		drained: make(chan struct{}),
		mem:     newMemory(cfg.MaxMemory, cfg.Limits.MaxMessage, func(n int) { met.evicted.Add(float64(n)) }),
		frost:   newFrost(),
		foreign: make(map[foreignKey]*Request),
	}
	e.door = door{addrs: slices.Clone(cfg.Addrs), listen: cfg.Listen, frost: e.frost, maxConns: cfg.MaxConns,
		maxPerAddr: cfg.MaxConnsPerAddr,
		proxies:    cfg.Proxies,
		log:        cfg.Logger, met: met, admit: e.admit}
	return e, errors.Join(
		gauge(cfg.Registerer, "req", "connections", "Open connections.", func() float64 { return float64(e.door.count()) }),
		gauge(cfg.Registerer, "req", "in_flight_requests", "Requests without an answer.",
			func() float64 { return float64(e.slots.used()) }),
		gauge(cfg.Registerer, "req", "held_bytes", "Bytes of incomplete and unanswered requests.",
			func() float64 { return float64(e.mem.used.Load()) }),
		gauge(cfg.Registerer, "req", "unauthenticated_bytes",
			"Bytes of requests that wait before it is certain who has sent them.",
			func() float64 { return float64(e.mem.unknown.Load()) }),
		gauge(cfg.Registerer, "req", "unread_bytes", "Bytes of answers that are not read.",
			func() float64 { return float64(e.unread.Load()) }))
}

// Open listens. The edge lives until Close, not until ctx ends.
func (e *ReqEdge) Open(ctx context.Context) error {
	if err := e.door.open(ctx); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	e.cancel = cancel
	e.g, e.ctx = errgroup.WithContext(run)
	e.accept()
	e.g.Go(e.sweep)
	e.serveTaken()
	return nil
}

// Done is closed when the edge has ended, on its own or by Close. It wants an
// edge that was opened.
func (e *ReqEdge) Done() <-chan struct{} { return e.ctx.Done() }

// Addr lists the addresses listened on.
func (e *ReqEdge) Addr() []net.Addr { return e.door.listening() }

// Stats tells what the edge is doing.
func (e *ReqEdge) Stats() ReqStats {
	return ReqStats{Conns: e.door.count(), InFlight: e.slots.used(), Writers: int(e.writers.Load()),
		Memory: e.mem.used.Load(),
		Unread: e.unread.Load()}
}

// Close stops accepting and reading, waits up to DrainTimeout for the
// outstanding answers to be given and read, and closes everything. It returns
// what ended the edge if that was something else. An edge that was never
// opened has nothing to close.
func (e *ReqEdge) Close() error {
	if e.cancel != nil {
		e.shut.Do(func() { e.failed = e.shutDown() })
	}
	return e.failed
}

func (e *ReqEdge) shutDown() error {
	e.door.turning.Lock()
	e.door.shut()
	e.closing = true
	e.door.turning.Unlock()
	if e.frost.state.Load() == freezing {
		e.Thaw()
	}
	for _, c := range e.retire() {
		_ = c.socket().SetReadDeadline(longAgo)
	}
	if !e.frost.on() { // else they are another process's
		e.awaitAnswers()
	}
	close(e.drained)
	e.cancel(ErrClosed)
	for _, c := range e.retire() {
		c.cut(ReasonClosed)
	}
	e.wg.Wait()
	if err := e.g.Wait(); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	return nil
}

// retire turns draining on and lists the connections there are.
func (e *ReqEdge) retire() []*reqConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
	all := make([]*reqConn, 0, len(e.conns))
	for c := range e.conns {
		all = append(all, c)
	}
	return all
}

func (e *ReqEdge) awaitAnswers() {
	limit := time.NewTimer(e.cfg.DrainTimeout)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for e.slots.used() > 0 || e.writers.Load() > 0 {
		select {
		case <-limit.C:
			return
		case <-look.C:
		}
	}
}

// admit starts a connection.
func (e *ReqEdge) admit(tcp *net.TCPConn, remote netip.AddrPort, h *herald) {
	c := &reqConn{edge: e, slots: gate{limit: e.cfg.MaxInFlightPerConn}}
	if err := c.init(tcp, remote, h, &e.cfg.Limits, e.frost); err != nil {
		_ = tcp.Close()
		e.door.leave(c.counted)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		_ = tcp.Close()
		e.door.leave(c.counted)
		return
	}
	e.conns[c] = struct{}{}
	e.wg.Add(1)
	go c.serve(false)
}

func (e *ReqEdge) forget(c *reqConn) {
	e.mu.Lock()
	delete(e.conns, c)
	e.mu.Unlock()
	e.door.leave(c.counted)
	c.stance.still.Store(true) // for good
	e.frost.stir()
}

// sweep looks for connections that nothing else wakes: messages begun and not
// finished, idle ones, and ends that follow missed.
func (e *ReqEdge) sweep() error {
	every := time.NewTicker(min(time.Second, e.cfg.MessageTimeout/4))
	defer every.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return nil
		case <-every.C:
		}
		now := clock()
		e.mu.Lock()
		for c := range e.conns {
			c.check(now)
		}
		e.mu.Unlock()
	}
}

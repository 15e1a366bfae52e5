package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/budget"
	"saltclusterd/sidecar/edge/front"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// ReqEdge serves the request port. See the package documentation.
type ReqEdge struct {
	lifetime
	cfg      ReqConfig
	metrics  *metrics
	cutLog   netconn.CutLog
	listener *netconn.Listener
	freezer  *netconn.Freezer
	slots    budget.Places // requests in flight
	refusals budget.Refusals
	mem      *budget.Memory
	unread   *budget.Unread // answers that their peers do not read
	hello    []byte

	conns   netconn.Set[*reqConn]
	taken   []*reqConn // taken over, not served yet
	answers answers

	writers atomic.Int64  // connections with output waiting
	drained chan struct{} // closed when readers need wait for no answer any more
	closing bool          // Close has begun; guarded by listener.Changing
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
	m, err := newMetrics(cfg.Registerer, "req")
	if err != nil {
		return nil, fmt.Errorf("req edge: %w", err)
	}
	e := &ReqEdge{
		cfg: cfg, metrics: m, cutLog: netconn.CutLog{Logger: cfg.Logger},
		slots:   budget.NewPlaces(cfg.MaxInFlight),
		hello:   zmtp.AppendReady(zmtp.AppendGreeting(nil), "ROUTER", ""),
		drained: make(chan struct{}),
		mem:     budget.NewMemory(cfg.MaxMemory, cfg.Limits.MaxMessage, func(n int) { m.evicted.Add(float64(n)) }),
		freezer: netconn.NewFreezer(),
	}
	e.unread = budget.NewUnread(cfg.MaxUnread)
	e.front = front.New(front.Config{TLS: cfg.Served.TLS, Turns: cfg.Served.Turns, HandshakeTimeout: cfg.HandshakeTimeout})
	e.answers.foreign = make(map[foreignKey]*Request)
	e.listener = netconn.NewListener(netconn.ListenerConfig{Addrs: cfg.Addrs, Listen: cfg.Listen, Freezer: e.freezer,
		MaxConns: cfg.MaxConns, MaxPerAddr: cfg.MaxConnsPerAddr, Proxies: cfg.Proxies, Logger: cfg.Logger,
		Metrics: m.Metrics, Admit: e.admit})
	return e, errors.Join(
		gauge(cfg.Registerer, "req", "connections", "Open connections.", func() float64 { return float64(e.listener.Count()) }),
		gauge(cfg.Registerer, "req", "in_flight_requests", "Requests without an answer.",
			func() float64 { return float64(e.slots.Used()) }),
		gauge(cfg.Registerer, "req", "held_bytes", "Bytes of incomplete and unanswered requests.",
			func() float64 { return float64(e.mem.Used()) }),
		gauge(cfg.Registerer, "req", "unauthenticated_bytes",
			"Bytes of requests that wait to be authenticated.",
			func() float64 { return float64(e.mem.Unauthenticated()) }),
		gauge(cfg.Registerer, "req", "unread_bytes", "Bytes of answers that are not read.",
			func() float64 { return float64(e.unread.Used()) }))
}

// Open listens. The edge lives until Close, not until ctx ends.
func (e *ReqEdge) Open(ctx context.Context) error {
	if err := e.listener.Open(ctx); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	e.begin(ctx)
	e.accept()
	e.g.Go(e.sweep)
	e.serveTaken()
	return nil
}

// Addr lists the addresses listened on.
func (e *ReqEdge) Addr() []net.Addr { return e.listener.Addr() }

// Stats tells what the edge is doing.
func (e *ReqEdge) Stats() ReqStats {
	return ReqStats{Conns: e.listener.Count(), InFlight: e.slots.Used(), Writers: int(e.writers.Load()),
		Memory: e.mem.Used(),
		Unread: e.unread.Used()}
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
	e.listener.Changing.Lock()
	e.listener.Shut()
	e.closing = true
	e.listener.Changing.Unlock()
	if e.freezer.Freezing() {
		e.Thaw()
	}
	for _, c := range e.conns.Retire() {
		c.StopReading()
	}
	if !e.freezer.On() { // else they are another process's
		e.awaitAnswers()
	}
	close(e.drained)
	e.cancel(ErrClosed)
	for _, c := range e.conns.Retire() {
		c.Cut(netconn.ReasonClosed)
	}
	e.awaitConns()
	if err := e.g.Wait(); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	return nil
}

func (e *ReqEdge) awaitAnswers() {
	limit := time.NewTimer(e.cfg.DrainTimeout)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for e.slots.Used() > 0 || e.writers.Load() > 0 {
		select {
		case <-limit.C:
			return
		case <-look.C:
		}
	}
}

// admit starts a connection.
func (e *ReqEdge) admit(a netconn.Accepted) {
	c := newReqConn(e)
	start := func() {
		e.wg.Add(1)
		go c.serve()
	}
	if c.Init(a) != nil || !e.conns.Add(c, start) {
		a.Refuse()
	}
}

func (e *ReqEdge) forget(c *reqConn) {
	e.conns.Remove(c)
	c.Leave()
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
		now := netconn.Clock()
		e.conns.Each(func(c *reqConn) { c.check(now) })
	}
}

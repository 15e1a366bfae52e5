package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/signal"
)

// state is what the client knows of the master.
type state uint8

const (
	connecting state = iota // nothing known yet, or since the last loss: calls wait
	up                      // a handshake succeeded since the last loss
	down                    // connecting failed: calls fail at once
)

// ReqClient sends requests to one master over a bounded pool of connections. Safe for concurrent use.
type ReqClient struct {
	cfg     ReqConfig
	metrics *reqMetrics
	calls   sync.Pool

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // tells the keeper to look at the pool
	risen  chan struct{} // tells the notifier that the master (re)appeared
	isUp   atomic.Bool

	mu     sync.Mutex // guards what follows
	closed bool
	state  state
	// when the master came up, or went on; a lost connection alone changes nothing. Zero: it is down
	rose    time.Time
	stalled Stall // why calls are refused though the master is connected, see stall.go
	connPool
	queue turns
	onUp  []func()
	probing
}

// ReqStats is a snapshot for status output.
type ReqStats struct {
	Up bool
	// when it came up, or went on after it stood still; it may have lost connections since
	Since                       time.Time
	Stalled                     Stall
	Conns, Idle, Waiting        int
	Replies, Failures, Connects uint64
	MaxConns, MaxQueue          int
}

// NewReqClient returns a client that is not connected yet.
func NewReqClient(cfg ReqConfig) *ReqClient {
	c := &ReqClient{
		cfg: cfg.withDefaults(), metrics: newReqMetrics(cfg.Registerer), connPool: connPool{conns: map[*conn]struct{}{}},
		wake: make(chan struct{}, 1), risen: make(chan struct{}, 1),
	}
	c.queue.most, c.queue.mostWaiting, c.queue.parked = c.cfg.PerSender, c.cfg.PerWaiter, c.metrics.held.Inc
	c.calls.New = func() any { return c.newCall() }
	c.metrics.registerBusy(cfg.Registerer, c)
	if cfg.OnUp != nil {
		c.onUp = append(c.onUp, cfg.OnUp)
	}
	return c
}

// Open starts connecting and returns at once; a master that is down is not an error. ctx does not end the client.
func (c *ReqClient) Open(ctx context.Context) error {
	c.mu.Lock() // a call may come before the client is open: it is told to ask again
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Unlock()
	c.wg.Go(c.keepIdle)
	c.wg.Go(c.notifyUp)
	c.wg.Go(c.watchWorkers)
	return nil
}

// Close fails what is outstanding with ErrClosed and waits for the client's goroutines.
func (c *ReqClient) Close() error {
	c.mu.Lock()
	if c.closed || c.cancel == nil {
		c.closed = true
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.cancel()
	for cn := range c.conns {
		cn.close()
	}
	waiting := c.queue.takeAll()
	c.mu.Unlock()
	failAll(waiting, errQueuedClosed)
	c.wg.Wait() // the readers fail what was in flight
	return nil
}

// Go is Do without waiting: done is called exactly once, when ctx ends or by has come at the latest, from a goroutine
// of the client or before Go returns, and must not block. (A time costs less than a context that has one.) body must
// stay unchanged until then, and for good after an error that is not Retryable. Calls wait in turns by from, which
// names the sender; empty: each call has a turn of its own. Of a sender PerSender are under way at a time, or
// PerWaiter.
func (c *ReqClient) Go(ctx context.Context, by time.Time, from string, body []byte, done func([]byte, error)) {
	ca := &call{c: c, from: from, body: body, done: done}
	c.mu.Lock() // abandon, which may run at once, has to wait until these fields are set
	timeout := time.Until(by)
	if !isLong(from) {
		timeout = min(c.cfg.Timeout, timeout)
	}
	ca.startTimer(timeout)
	if ctx.Done() != nil {
		ca.unwatch = context.AfterFunc(ctx, func() { c.abandonCall(ca, context.Cause(ctx)) })
	}
	c.mu.Unlock()
	c.submitCall(ca)
}

// Do sends body and waits for the reply body, which the caller owns. The body's rule is that of Go.
func (c *ReqClient) Do(ctx context.Context, body []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, unsentErrorOf(err)
	}
	ca := c.calls.Get().(*call)
	ca.body = body
	ca.startTimer(c.cfg.Timeout)
	c.submitCall(ca)
	select {
	case <-ca.ready:
	case <-ctx.Done():
		c.abandonCall(ca, context.Cause(ctx))
		<-ca.ready
	}
	reply, err := ca.reply, ca.err
	ca.recycleCall()
	return reply, err
}

// Up reports whether the master currently answers on the ZMTP level.
func (c *ReqClient) Up() bool { return c.isUp.Load() }

// OnUp registers f to be called, one call at a time, each time the master (re)appeared; when it is up already, soon.
func (c *ReqClient) OnUp(f func()) {
	c.mu.Lock()
	c.onUp = append(c.onUp, f)
	c.mu.Unlock()
	if c.Up() {
		signal.Send(c.risen)
	}
}

// Stats returns the client's current numbers.
func (c *ReqClient) Stats() ReqStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ReqStats{
		Up: c.isUp.Load(), Since: c.rose, Stalled: c.stalled, Conns: len(c.conns), Idle: len(c.idle), Waiting: c.queue.len,
		MaxConns: c.cfg.MaxConns, MaxQueue: c.cfg.MaxQueue, Replies: c.metrics.replies.Load(),
		Failures: c.metrics.failures.Load(), Connects: c.metrics.connects.Load(),
	}
}

// notifyUp runs the OnUp callbacks, which may take their time.
func (c *ReqClient) notifyUp() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.risen:
		}
		c.mu.Lock()
		callbacks := c.onUp[:len(c.onUp):len(c.onUp)]
		c.mu.Unlock()
		for _, f := range callbacks {
			f()
		}
	}
}

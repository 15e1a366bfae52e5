package mirror

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Bus is the local master's event bus (eventbus.Bus).
type Bus interface {
	Subscribe(f func(tag string, data []byte)) (cancel func())
	FireRaw(ctx context.Context, tag string, data []byte) error
}

// Config is what a Mirror needs. Logger and Registerer may be nil.
type Config struct {
	Tags       []string // globs; none: nothing is sent, what peers send is shown all the same
	Bus        Bus
	Members    func() []node.ID // the other masters' nodes
	Send       func(ctx context.Context, to node.ID, batch []byte) error
	Limits     Limits
	BackoffMin time.Duration // 100 ms, doubled up to
	BackoffMax time.Duration // 5 s
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	now        func() time.Time
}

// Mirror sends and shows events.
type Mirror struct {
	c       Config
	tags    globs
	metrics *metrics

	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	unwatch   func()
	mu        sync.Mutex // guards what follows
	closed    bool
	queues    map[node.ID]*queue
	positions map[node.ID]position // of those who send to us
}

// MaxAnswer bounds what a peer answers to events, which is nothing.
const MaxAnswer = 1 << 10

// New returns a mirror; it sends nothing before Open.
func New(c Config) (*Mirror, error) {
	tags, err := compileGlobs(c.Tags)
	if err != nil {
		return nil, err
	}
	c.Limits.setDefaults()
	c.BackoffMin = cmp.Or(c.BackoffMin, 100*time.Millisecond)
	c.BackoffMax = max(cmp.Or(c.BackoffMax, 5*time.Second), c.BackoffMin)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	return &Mirror{
		c: c, tags: tags, metrics: newMetrics(c.Registerer),
		queues: map[node.ID]*queue{}, positions: map[node.ID]position{},
	}, nil
}

// Open starts to watch the bus.
func (m *Mirror) Open(ctx context.Context) error {
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if len(m.tags) > 0 {
		m.unwatch = m.c.Bus.Subscribe(m.handleEvent)
	}
	return nil
}

// Close ends; what waits is lost.
func (m *Mirror) Close() error {
	if m.cancel == nil {
		return nil
	}
	if m.unwatch != nil {
		m.unwatch()
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
	return nil
}

// handleEvent takes an event of the local bus; it runs on the bus's goroutine.
func (m *Mirror) handleEvent(tag string, data []byte) {
	if !m.tags.matchesTag(tag) {
		return
	}
	if len(data) > maxEvent {
		m.metrics.dropped.WithLabelValues("size").Inc()
		return
	}
	e := event{tag, append([]byte(nil), data...)}
	for _, id := range m.c.Members() {
		if q := m.queueOf(id); q != nil {
			m.metrics.countDropped("full", q.addEvent(e))
		}
	}
}

// queueOf returns the queue of what waits for a node. A new queue gets a sender.
func (m *Mirror) queueOf(id node.ID) *queue {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	q := m.queues[id]
	if q == nil {
		q = newQueue(m.c.Limits, m.c.now)
		m.queues[id] = q
		m.wg.Go(func() { m.sendQueue(id, q) })
	}
	return q
}

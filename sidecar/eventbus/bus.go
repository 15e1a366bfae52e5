package eventbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/signal"
)

// What firing an event can fail with.
var (
	// ErrBusFull: the queue of events waiting for the master is full.
	ErrBusFull = errors.New("eventbus: event queue is full")
	// ErrBusClosed: the bus was closed.
	ErrBusClosed = errors.New("eventbus: event bus is closed")
	// ErrTag: the tag is empty or would be cut in two.
	ErrTag = errors.New("eventbus: unusable event tag")
)

// Options configures a Bus. Zero values take the defaults named.
type Options struct {
	// FireOnly leaves the bus unread: every reader costs the master CPU for each event.
	FireOnly bool
	// Serving returns when the master's workers answer, or ctx has ended. It is asked when the bus is back after it was
	// away: what listens to the bus (the reactor, engines, event_return) connects while the master starts, and would miss
	// what is fired before. A stock master fires nothing before its workers are there. It may be another release now, and
	// Serving tells Serves which, before anything is fired. nil: the bus is used as soon as it is back.
	Serving     func(ctx context.Context)
	QueueEvents int   // events waiting for the pull socket at most (10,000)
	QueueBytes  int64 // and their bytes (64 MiB); one is let through whatever its size
	MaxEvent    int64 // bytes of one received event (64 MiB)
	// how long the event of a sign-in waits for others at most (50 ms); in a storm five times that
	Linger     time.Duration
	BackoffMin time.Duration // 20 ms, doubled up to
	BackoffMax time.Duration // 1 s
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	writeTimeout time.Duration // with a master that stands still (10 s)
}

// Bus is the master's event bus: fire on its pull socket, receive from its pub socket. Both reconnect by themselves.
type Bus struct {
	o         Options
	format    format
	pub, pull endpoint
	actors    int // see AwaitActors
	metrics   *busMetrics

	ctx           context.Context
	cancel        context.CancelFunc
	receiving     context.Context // ends first
	stopReceiving context.CancelFunc
	wg            sync.WaitGroup
	isUp          atomic.Bool

	handlers handlers
	back     chan struct{} // signals that the bus was reached after it was away
	closing  chan struct{}
	mu       sync.Mutex // guards what follows
	closed   bool
	flow     flow
	eventQueue
}

// format is how the master wants its events.
type format struct {
	major        int
	maxEventSize int64
	lengths      atomic.Bool // with their length, see Serves
}

func (f *format) formatStamp(t time.Time) string { return formatStamp(t, f.major) }

func (f *format) trimEvent(data []byte) ([]byte, error) { return trimEvent(data, f.maxEventSize) }

// pullFraming is what the master takes.
func (f *format) pullFraming() framing {
	if f.lengths.Load() {
		return prefixed
	}
	return bare
}

// eventQueue is the events that wait to be fired.
type eventQueue struct {
	queue  chan queuedEvent
	bytes  int64         // of those in the queue
	urgent atomic.Int64  // events queued that are not lazy, and those who wait in Flush
	hurry  chan struct{} // what is queued is not to wait for more
}

// addEvent queues an event, and reports whether there was room.
func (q *eventQueue) addEvent(e queuedEvent) bool {
	select {
	case q.queue <- e:
	default:
		return false
	}
	q.bytes += e.size()
	if !e.lazy {
		q.urgent.Add(1)
	}
	if !e.lazy || q.bytes > busBatch {
		q.endLinger()
	}
	return true
}

// removeEvent notes that an event was taken out.
func (q *eventQueue) removeEvent(e queuedEvent) {
	if !e.lazy {
		q.urgent.Add(-1)
	}
	q.bytes -= e.size()
}

// isPressing says whether a queued event, or a caller in Flush, should not wait for more events.
func (q *eventQueue) isPressing() bool { return q.urgent.Load() > 0 || q.bytes > busBatch }

// endLinger ends a linger.
func (q *eventQueue) endLinger() { signal.Send(q.hurry) }

type queuedEvent struct {
	tag  string
	data []byte
	lazy bool // it may wait a little for others
}

func (e queuedEvent) size() int64 { return int64(len(e.tag) + len(e.data)) }

type endpoint struct{ network, address string }

// New returns a bus for the master of cfg, not connected yet.
func New(cfg *localmaster.Config, o Options) *Bus {
	o.QueueEvents = cmp.Or(o.QueueEvents, 10_000)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.MaxEvent = cmp.Or(o.MaxEvent, 64<<20)
	o.Linger = cmp.Or(o.Linger, busLinger)
	o.BackoffMin = cmp.Or(o.BackoffMin, 20*time.Millisecond)
	o.BackoffMax = max(cmp.Or(o.BackoffMax, time.Second), o.BackoffMin)
	o.writeTimeout = cmp.Or(o.writeTimeout, busWriteTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bus{
		o: o, format: format{major: cfg.Version.Major, maxEventSize: cfg.Int("max_event_size")},
		metrics: newBusMetrics(o.Registerer), back: make(chan struct{}, 1), closing: make(chan struct{}),
		eventQueue: eventQueue{queue: make(chan queuedEvent, o.QueueEvents), hurry: make(chan struct{}, 1)},
		pub:        busEndpoint(cfg, "master_event_pub.ipc", "tcp_master_pub_port"),
		pull:       busEndpoint(cfg, "master_event_pull.ipc", "tcp_master_pull_port"), actors: countActors(cfg),
	}
	b.flow.moved = make(chan struct{})
	b.Serves(cfg.Version)
	return b
}

// Serves says which release the master is from now on: what it takes is framed by it. Not to be told by listening:
// those of 3007 and 3008 publish without lengths whatever they take, and one that has nothing to say publishes nothing.
func (b *Bus) Serves(v localmaster.Version) { b.format.lengths.Store(v.TakesLengths()) }

func busEndpoint(cfg *localmaster.Config, socket, portOption string) endpoint {
	if cfg.IPCMode == "tcp" {
		return endpoint{"tcp", net.JoinHostPort("127.0.0.1", strconv.FormatInt(cfg.Int(portOption), 10))}
	}
	return endpoint{"unix", filepath.Join(cfg.SockDir, socket)}
}

// Open starts the connections and returns at once; a master that is down is not an error. ctx does not end the bus.
func (b *Bus) Open(ctx context.Context) error {
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.receiving, b.stopReceiving = context.WithCancel(b.ctx)
	if !b.o.FireOnly {
		b.wg.Go(b.receiveEvents)
	}
	b.wg.Go(b.sendEvents)
	b.wg.Go(b.awaitWorkers)
	return nil
}

// Close sends what is queued while the master takes it (up to a second), then ends.
func (b *Bus) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if !first || b.cancel == nil {
		return nil
	}
	b.stopReceiving()
	close(b.closing)
	grace := time.AfterFunc(time.Second, b.cancel)
	defer grace.Stop()
	b.wg.Wait()
	b.cancel()
	return nil
}

// Fire queues an event; _stamp is added unless data has one. It returns when the event is queued, not when it is
// delivered. Values are trimmed to the master's max_event_size as Salt does. Errors: ErrBusFull when the master has
// not taken events for long, ErrBusClosed, ErrTag, and a value that has no msgpack form.
func (b *Bus) Fire(ctx context.Context, tag string, data map[string]any) error {
	text, err := appendEventData(nil, data, time.Now(), b.format.major)
	if err != nil {
		return fmt.Errorf("fire event: %w", err)
	}
	return b.FireRaw(ctx, tag, text)
}

// Stamp is the _stamp of an event that happens at t, as the master's version writes it.
func (b *Bus) Stamp(t time.Time) string { return b.format.formatStamp(t) }

// FireRaw queues an event whose data is a msgpack map already (bin types as on the bus, _stamp included). The bus
// owns data from now on.
func (b *Bus) FireRaw(ctx context.Context, tag string, data []byte) error {
	data, err := b.format.trimEvent(data)
	if err != nil {
		return fmt.Errorf("fire event: %w", err)
	}
	return b.FireTrimmed(ctx, tag, data)
}

// FireTrimmed is FireRaw for data that has been trimmed to max_event_size as its sender wants it.
func (b *Bus) FireTrimmed(ctx context.Context, tag string, data []byte) error {
	return b.enqueueEvent(ctx, queuedEvent{tag: tag, data: data})
}

func (b *Bus) enqueueEvent(ctx context.Context, e queuedEvent) error {
	tag := e.tag
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fire event: %w", err)
	}
	if tag == "" || indexTagEnd(tag) {
		return fmt.Errorf("fire event: %w", ErrTag)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.ctx == nil {
		return ErrBusClosed
	}
	// One that is larger than the queue may be goes alone: a caller in order offers it again.
	if b.bytes > 0 && b.bytes+e.size() > b.o.QueueBytes || !b.addEvent(e) {
		b.metrics.dropped.Inc()
		return ErrBusFull
	}
	b.metrics.waiting.Inc()
	b.flow.queued++
	return nil
}

// Subscribe registers f for every event from now on. f runs on the receiving goroutine: it must not block and must
// not keep data, which is the event's msgpack map.
func (b *Bus) Subscribe(f func(tag string, data []byte)) (cancel func()) {
	return b.handlers.addHandler(f)
}

// Up reports whether the receiving side is connected; never with FireOnly.
func (b *Bus) Up() bool { return b.isUp.Load() }

func indexTagEnd(tag string) bool {
	for i := range len(tag) - 1 {
		if tag[i] == '\n' && tag[i+1] == '\n' {
			return true
		}
	}
	return tag[len(tag)-1] == '\n'
}

package localmaster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What firing an event can fail with.
var (
	// ErrBusFull: the queue of events waiting for the master is full.
	ErrBusFull = errors.New("localmaster: event queue is full")
	// ErrBusClosed: the bus was closed.
	ErrBusClosed = errors.New("localmaster: event bus is closed")
	// ErrEventTooLarge: the event is larger than the master's max_event_size allows.
	ErrEventTooLarge = errors.New("localmaster: event too large")
)

// BusOptions configures a Bus. Zero values take the defaults named.
type BusOptions struct {
	QueueEvents int           // events waiting for the pull socket at most (10,000)
	QueueBytes  int64         // and their bytes (64 MiB)
	MaxEvent    int64         // bytes of one received event (64 MiB)
	BackoffMin  time.Duration // 20 ms, doubled up to
	BackoffMax  time.Duration // 1 s
	Logger      *slog.Logger
	Registerer  prometheus.Registerer
}

// Bus is the master's event bus: fire on its pull socket, receive from its pub socket. Both reconnect by themselves.
type Bus struct {
	cfg *Config
	o   BusOptions
}

// NewBus returns a bus for the master of cfg, not connected yet.
func NewBus(cfg *Config, o BusOptions) *Bus { return &Bus{cfg: cfg, o: o} }

// Open starts the connections and returns at once; a master that is down is not an error.
func (b *Bus) Open(ctx context.Context) error { return nil }

// Close sends what is queued while the master takes it (up to a second), then ends.
func (b *Bus) Close() error { return nil }

// Fire queues an event; _stamp is added unless data has one. It returns when the event is queued, not when it is
// delivered: ErrBusFull when the master has not taken events for long.
func (b *Bus) Fire(ctx context.Context, tag string, data map[string]any) error { return nil }

// FireRaw queues an event whose data is a msgpack map already (bin types as on the bus, _stamp included).
func (b *Bus) FireRaw(ctx context.Context, tag string, data []byte) error { return nil }

// Subscribe registers f for every event from now on. f runs on the receiving goroutine: it must not block and must
// not keep data, which is the event's msgpack map.
func (b *Bus) Subscribe(f func(tag string, data []byte)) (cancel func()) { return func() {} }

// Up reports whether the receiving side is connected.
func (b *Bus) Up() bool { return false }

package upstream

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ReqConfig configures a ReqClient. Zero values take the defaults named.
type ReqConfig struct {
	Addr             string        // host:port of the master's ret_port
	MaxConns         int           // connections at most (64)
	MaxQueue         int           // calls waiting for a connection at most (4096)
	MaxRequest       int64         // bytes of a request body (256 MiB)
	MaxReply         int64         // bytes of a reply body (256 MiB)
	Timeout          time.Duration // a call without a nearer deadline ends after it (60 s)
	DialTimeout      time.Duration // TCP connect and ZMTP handshake together (5 s)
	DrainTimeout     time.Duration // how long a given-up request's connection waits for the stale reply (2 s)
	IdleTimeout      time.Duration // a connection above MinIdle idle for so long is closed (60 s)
	MinIdle          int           // connections kept however long they idle (1)
	BackoffMin       time.Duration // pause after the first failed connect (50 ms), doubled up to
	BackoffMax       time.Duration // this one (1 s)
	Heartbeat        time.Duration // interval of our own PINGs (10 s)
	HeartbeatTimeout time.Duration // silence after which a connection counts as lost (30 s)
	Dial             func(ctx context.Context, network, addr string) (net.Conn, error)
	OnUp             func() // like ReqClient.OnUp, set before Open
	Logger           *slog.Logger
	Registerer       prometheus.Registerer
}

// ReqClient sends requests to one master over a bounded pool of connections. Safe for concurrent use.
type ReqClient struct {
	cfg ReqConfig
}

// ReqStats is a snapshot for status output.
type ReqStats struct {
	Up                         bool
	Conns, Idle, Busy, Waiting int
	Sent, Failed, Reconnects   uint64
}

// NewReqClient returns a client that is not connected yet.
func NewReqClient(cfg ReqConfig) *ReqClient { return &ReqClient{cfg: cfg} }

// Open starts connecting and returns at once; a master that is down is not an error.
func (c *ReqClient) Open(ctx context.Context) error { return nil }

// Close fails what is outstanding with ErrClosed and waits for the client's goroutines.
func (c *ReqClient) Close() error { return nil }

// Do sends body and waits for the reply body, which the caller owns. body may be reused after Do returned nil error
// or a Retryable one.
func (c *ReqClient) Do(ctx context.Context, body []byte) ([]byte, error) { return nil, ErrDown }

// Go is Do without waiting: done is called exactly once, from a goroutine of the client or before Go returns, and
// must not block. body must stay unchanged until then.
func (c *ReqClient) Go(ctx context.Context, body []byte, done func([]byte, error)) {
	done(nil, ErrDown)
}

// Up reports whether the master currently answers on the ZMTP level.
func (c *ReqClient) Up() bool { return false }

// OnUp registers f to be called, one call at a time, each time the master (re)appeared.
func (c *ReqClient) OnUp(f func()) {}

// Stats returns the client's current numbers.
func (c *ReqClient) Stats() ReqStats { return ReqStats{} }

package upstream

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SubConfig configures a SubClient. Zero values take the defaults named.
type SubConfig struct {
	Addr             string               // host:port of the master's publish_port
	OnMessage        func(parts [][]byte) // every message, in order, from one goroutine; the parts are the callee's
	OnConnect        func()               // subscribed (again): what was published before is lost; same goroutine
	OnDisconnect     func(error)          // the connection broke; same goroutine
	MaxMessage       int64                // bytes of one publication (256 MiB)
	DialTimeout      time.Duration        // TCP connect and ZMTP handshake together (5 s)
	BackoffMin       time.Duration        // 20 ms, doubled up to
	BackoffMax       time.Duration        // 1 s
	Heartbeat        time.Duration        // 10 s
	HeartbeatTimeout time.Duration        // 30 s
	Dial             func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger           *slog.Logger
	Registerer       prometheus.Registerer
}

// SubClient keeps one unfiltered subscription to a master's PUB socket alive.
type SubClient struct{ cfg SubConfig }

// NewSubClient returns a client that is not connected yet.
func NewSubClient(cfg SubConfig) *SubClient { return &SubClient{cfg: cfg} }

// Open starts connecting and returns at once.
func (c *SubClient) Open(ctx context.Context) error { return nil }

// Close ends the subscription and waits for the last OnMessage.
func (c *SubClient) Close() error { return nil }

// Up reports whether the subscription is established.
func (c *SubClient) Up() bool { return false }

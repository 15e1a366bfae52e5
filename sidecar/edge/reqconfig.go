package edge

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/zmtp"
)

// ReqHandler is given every request.
type ReqHandler interface {
	// ServeReq is called on the goroutine that reads the connection, so it
	// must not block. Reply or Drop must be called on r exactly once, by it or
	// later, from any goroutine; until then r holds a place of the in-flight
	// limits. ctx ends when the edge closes.
	ServeReq(ctx context.Context, r *Request)
}

// ReqConfig configures a ReqEdge. Zero fields take the default named.
type ReqConfig struct {
	Addrs  []string // host:port to listen on
	Limits zmtp.Limits
	// Proxies are load balancers: their connections must begin with a PROXY
	// header (package proxyproto), and are those of the address it names.
	Proxies []netip.Prefix
	// Listen gives the listeners; nil: they are made.
	Listen func(ctx context.Context, network, addr string) (net.Listener, error)

	Served Served

	MaxInFlightPerConn int   // requests without an answer; more are left unread. 32
	MaxInFlight        int   // the same over all connections. 65536
	MaxConns           int   // 65536
	MaxConnsPerAddr    int   // 0: none. Behind a load balancer that is not in Proxies all peers share its address.
	MaxMemory          int64 // bytes of incomplete and unanswered requests, all connections; see memory. 512 MiB
	MaxOutput          int   // bytes of unread answers per connection, beside the one being written. 4 MiB
	MaxUnread          int64 // bytes of unread answers, all connections. 512 MiB

	HandshakeTimeout time.Duration // from accept to READY. 10 s
	MessageTimeout   time.Duration // from the first to the last byte of a request that comes slower than minRate. 60 s
	OutputTimeout    time.Duration // for a peer to read anything of its answer. 30 s
	IdleTimeout      time.Duration // 0: none. A REQ peer does not resend what it sends into a closing connection.
	DrainTimeout     time.Duration // Close waits so long for outstanding answers. 5 s

	Handler    ReqHandler
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func (c ReqConfig) withDefaults() (ReqConfig, error) {
	if c.Handler == nil {
		return c, errors.New("req edge: no handler")
	}
	if len(c.Addrs) == 0 {
		return c, errors.New("req edge: no address to listen on")
	}
	if c.Limits.MaxMore <= 0 {
		c.Limits.MaxMore = maxEnvelope
	}
	c.Limits = c.Limits.WithDefaults()
	orInt(&c.MaxInFlightPerConn, 32)
	orInt(&c.MaxInFlight, 65536)
	orInt(&c.MaxConns, 65536)
	orInt(&c.MaxMemory, 512<<20)
	orInt(&c.MaxOutput, 4<<20)
	orInt(&c.MaxUnread, 512<<20)
	orInt(&c.HandshakeTimeout, 10*time.Second)
	orInt(&c.MessageTimeout, 60*time.Second)
	orInt(&c.OutputTimeout, 30*time.Second)
	orInt(&c.DrainTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// orInt replaces a value that is not positive by its default.
func orInt[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

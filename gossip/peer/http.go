package peer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"saltclusterd/gossip/node"
)

type contextKey struct{}

// FromContext returns the member that sent a request, in handlers of peer RPC.
func FromContext(ctx context.Context) (node.ID, bool) {
	id, ok := ctx.Value(contextKey{}).(node.ID)
	return id, ok
}

// HTTPClient returns the client for peer RPC. The host of an URL is a node id: https://<node-id>/path goes over HTTP/2
// to that member and to no other. Requests need a context with a deadline; redirects are not followed.
func (p *Port) HTTPClient() *http.Client { return p.client }

// Bounds on peer RPC. Members are trusted to be members, not to be free of faults.
const (
	rpcHeaderTimeout = 10 * time.Second
	rpcIdleTimeout   = 5 * time.Minute
	rpcTunnelIdle    = 30 * time.Second // of a connection through another member
	rpcMaxHeader     = 16 << 10         // bytes; what waits for its turn has its header in memory
	rpcStreams       = 256              // concurrent requests per connection
	rpcPingAfter     = 5 * time.Second
	rpcPingTimeout   = 5 * time.Second
	rpcFrame         = 256 << 10        // bytes; with the 16 KiB that are usual, much time goes into handing them around
	rpcStallTimeout  = 30 * time.Second // a reader that takes nothing for so long is cut
)

func (p *Port) newServer() *http.Server {
	handler := p.cfg.Handler
	if handler == nil {
		handler = http.NotFoundHandler()
	}
	return &http.Server{
		Handler:           handler,
		Protocols:         onlyHTTP2(),
		HTTP2:             http2Config(),
		ReadHeaderTimeout: rpcHeaderTimeout,
		IdleTimeout:       rpcIdleTimeout,
		MaxHeaderBytes:    rpcMaxHeader,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			id, ok := Remote(c)
			if !ok {
				return ctx
			}
			return context.WithValue(ctx, contextKey{}, id)
		},
	}
}

func (p *Port) newClient() *http.Client {
	return &http.Client{
		Transport: &retryTransport{&wayTransport{&p.ways,
			p.newTransport(rpcIdleTimeout, p.dialDirectly), p.newTransport(rpcTunnelIdle, p.Dial)}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (p *Port) newTransport(idle time.Duration,
	dial func(context.Context, node.ID, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Protocols: onlyHTTP2(),
		HTTP2:     http2Config(),
		DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, fmt.Errorf("peer RPC to %q: %w", addr, err)
			}
			id, err := node.ParseID(host)
			if err != nil {
				return nil, fmt.Errorf("peer RPC: %w", err)
			}
			return dial(ctx, id, ProtoHTTP)
		},
		DisableCompression: true,
		IdleConnTimeout:    idle,
	}
}

func onlyHTTP2() *http.Protocols {
	var p http.Protocols
	p.SetHTTP2(true)
	return &p
}

func http2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: rpcStreams,
		MaxReadFrameSize:     rpcFrame,
		SendPingTimeout:      rpcPingAfter,
		PingTimeout:          rpcPingTimeout,
		WriteByteTimeout:     rpcStallTimeout,
	}
}

package ports

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/edge/front"
	"saltclusterd/sidecar/edge/tlsconfig"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/zmtp"
)

// listenRetry is the pause before a port that is taken is tried again.
const listenRetry = 250 * time.Millisecond

// Config configures Ports.
type Config struct {
	Options *config.Config
	Master  *localmaster.Config                  // its option ssl is in force until UseMaster is called
	Serve   func(context.Context, *edge.Request) // serves a request, see edge.ReqHandler
	Listen  func(ctx context.Context, network, address string) (net.Listener, error)
	// Identify and Targeted are those of edge.PubConfig.
	Identify func(said []byte) (string, bool)
	Targeted func() bool

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Ports are the ports for minions.
type Ports struct {
	Publish  *edge.PubEdge
	Requests *edge.ReqEdge
	TLS      *tlsconfig.Source // of both

	cfg  Config
	held atomic.Bool // another process, the salt-master as a rule, has one of them
}

// New returns ports that are not open.
func New(cfg Config) (*Ports, error) {
	p := &Ports{cfg: cfg, TLS: tlsconfig.NewSource(cfg.Logger)}
	e := cfg.Options.Edge
	pub, req := p.addresses()
	var transports []edge.Transport
	for _, name := range e.Transports {
		if t, ok := edge.TransportNamed(name); ok {
			transports = append(transports, t)
		}
	}
	served := edge.Served{Transports: transports, RequireTLS: e.RequireTLS, TLS: p.TLS.Config, Turns: front.NewTurns(0)}
	var err error
	p.Publish, err = edge.NewPubEdge(edge.PubConfig{
		Addrs: pub, Proxies: e.Proxies(), MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		QueueMessages: e.PubQueueMessages, QueueBytes: int64(e.PubQueueBytes), HandshakeTimeout: e.HandshakeTimeout,
		Heartbeat: e.Heartbeat, HeartbeatTimeout: e.HeartbeatTimeout, Served: served,
		Identify: cfg.Identify, Targeted: cfg.Targeted,
		Listen: cfg.Listen, Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	p.Requests, err = edge.NewReqEdge(edge.ReqConfig{
		Addrs: req, Proxies: e.Proxies(),
		Limits:   zmtp.Limits{MaxFrame: int64(e.MaxRequestSize), MaxMessage: int64(e.MaxRequestSize)},
		MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		MaxInFlight: e.MaxInFlight, MaxInFlightPerConn: e.MaxInFlightPerConnection, MaxMemory: int64(e.MaxRequestMemory),
		MaxUnread:        int64(e.MaxRequestMemory),
		HandshakeTimeout: e.HandshakeTimeout, Served: served,
		Handler: handler{cfg.Serve}, Listen: cfg.Listen, Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	p.UseMaster(cfg.Master)
	if cfg.Registerer != nil {
		err = cfg.Registerer.Register(p.TLS)
	}
	return p, err
}

// UseMaster takes TLS from the option ssl of the master, which zeromq does without.
func (p *Ports) UseMaster(master *localmaster.Config) {
	if slices.ContainsFunc(p.cfg.Options.Edge.Transports, func(name string) bool { return name != "zeromq" }) {
		p.TLS.Use(master)
	}
}

// handler implements edge.ReqHandler.
type handler struct {
	serve func(context.Context, *edge.Request)
}

// ServeReq implements edge.ReqHandler.
func (h handler) ServeReq(ctx context.Context, r *edge.Request) { h.serve(ctx, r) }

func (p *Ports) addresses() (pub, req []string) {
	return p.cfg.Options.EdgeAddresses(membership.LocalAddrs())
}

// AwaitFree calls open, which opens a port, until that is not taken: a salt-master that has not been moved to loopback
// yet holds it. held is called when it has to wait.
func (p *Ports) AwaitFree(ctx context.Context, open func(context.Context) error, held func()) error {
	for logged := false; ; {
		err := open(ctx)
		if !errors.Is(err, syscall.EADDRINUSE) {
			p.held.Store(false)
			return err
		}
		if !logged {
			logged = true
			p.held.Store(true)
			held()
			p.cfg.Logger.Error(
				"a port for minions is taken: move the salt-master to loopback (interface: 127.0.0.1) and restart it", "err", err)
		}
		if !backoff.Sleep(ctx, listenRetry) {
			return ctx.Err()
		}
	}
}

// IsHeld says whether AwaitFree waits, because another process has a port.
func (p *Ports) IsHeld() bool { return p.held.Load() }

// Reopen has the ports listen again after a drain.
func (p *Ports) Reopen(ctx context.Context) error {
	for _, resume := range []func(context.Context) error{p.Publish.Resume, p.Requests.Resume} {
		if err := p.AwaitFree(ctx, resume, func() {}); err != nil {
			return err
		}
	}
	return nil
}

// AwaitEnd returns nil when ctx ends, or which port has ended on its own before: a node that minions cannot reach must
// not look healthy.
func (p *Ports) AwaitEnd(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.Publish.Done():
		return errors.New("the publish port ended")
	case <-p.Requests.Done():
		return errors.New("the request port ended")
	}
}

// Conns is how many connections minions have.
func (p *Ports) Conns() int { return p.Publish.Conns() + p.Requests.Stats().Conns }

// Report returns the rows of the status.
func (p *Ports) Report() []adminapi.Edge {
	pub, req := p.Publish.Stats(), p.Requests.Stats()
	return []adminapi.Edge{
		{Name: "pub", Addresses: texts(p.Publish.Addr()), Connections: pub.Subscribers, Cut: pub.Cut},
		{Name: "req", Addresses: texts(p.Requests.Addr()), Connections: req.Conns, InFlight: req.InFlight},
	}
}

func texts(addrs []net.Addr) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

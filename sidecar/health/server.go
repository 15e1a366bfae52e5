package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// ServerConfig says where a Server listens and whom it trusts.
type ServerConfig struct {
	Listen      string // HTTP; empty: off
	AgentListen string // HAProxy agent-check; empty: off
	Checker     *Checker
	Trusted     []netip.Prefix      // networks that hear reasons and may read metrics
	Gatherer    prometheus.Gatherer // nil: no /metrics
	Leads       func() bool         // whether this node leads the cluster; nil: no /leader
	Page        http.Handler        // what is at /status, for trusted networks only; nil: nothing
	// ListenWith gives the listeners; nil: they are made.
	ListenWith func(ctx context.Context, network, addr string) (net.Listener, error)

	MaxConnections           int // per listener; default 256
	MaxConnectionsPerAddress int // per listener; default 32

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Bounds of one connection.
const (
	headerTimeout = 2 * time.Second
	readTimeout   = 5 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 4 << 10
	closeTimeout  = 2 * time.Second
)

// Server answers load balancers and monitoring.
type Server struct {
	cfg     ServerConfig
	log     *slog.Logger
	metrics *serverMetrics
	http    *http.Server
	ln, agt *limited // nil: off, or not bound
	bound   bool

	cancel context.CancelFunc
	g      *errgroup.Group
	ctx    context.Context
}

// NewServer checks the configuration and touches nothing.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Checker == nil {
		return nil, errors.New("health server: a checker is required")
	}
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = 256
	}
	if cfg.MaxConnectionsPerAddress <= 0 {
		cfg.MaxConnectionsPerAddress = 32
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, log: cfg.Logger, metrics: newServerMetrics(cfg.Registerer)}, nil
}

// Bind binds the listeners. Connections wait for Open, which calls Bind itself where that was not done before.
func (s *Server) Bind(ctx context.Context) (err error) {
	if s.bound {
		return nil
	}
	if s.ln, err = s.listenLimited(ctx, s.cfg.Listen); err != nil {
		return fmt.Errorf("health_listen: %w", err)
	}
	if s.agt, err = s.listenLimited(ctx, s.cfg.AgentListen); err != nil {
		s.ln.close()
		return fmt.Errorf("agent_check_listen: %w", err)
	}
	s.bound = true
	return nil
}

// Open serves until Close.
func (s *Server) Open(ctx context.Context) error {
	if err := s.Bind(ctx); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.g, s.ctx = errgroup.WithContext(run)
	s.http = &http.Server{
		Handler:           s.newHandler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // strangers' mistakes
	}
	if s.ln != nil {
		s.g.Go(func() error {
			if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve health: %w", err)
			}
			return nil
		})
	}
	if s.agt != nil {
		s.g.Go(func() error { return s.serveAgent(s.ctx) })
	}
	return nil
}

func (s *Server) listenLimited(ctx context.Context, addr string) (*limited, error) {
	if addr == "" {
		return nil, nil
	}
	listen := s.cfg.ListenWith
	if listen == nil {
		listen = (&net.ListenConfig{}).Listen
	}
	l, err := listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return newLimited(l, s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress, s.metrics.countRefused), nil
}

// Done is closed when the server has stopped, on its own or by Close.
func (s *Server) Done() <-chan struct{} { return s.ctx.Done() }

// Addr returns the bound addresses of HTTP and agent-check; nil when off.
func (s *Server) Addr() (http, agent net.Addr) {
	if s.ln != nil {
		http = s.ln.Addr()
	}
	if s.agt != nil {
		agent = s.agt.Addr()
	}
	return http, agent
}

// Close stops listening and waits for answers under way.
func (s *Server) Close() error {
	if s.cancel == nil { // never opened
		s.ln.close()
		s.agt.close()
		return nil
	}
	s.cancel()
	s.agt.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	return s.g.Wait()
}

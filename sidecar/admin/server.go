package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Config says where and for whom a Server serves.
type Config struct {
	Socket string // path of the unix socket; its directory is made when missing
	Group  string // name or number of a group that may use the socket; empty: none
	Verbs  []Verbs
	// Inherited gives the listening socket that a process before this one has made at a path, nil: there is none.
	Inherited func(path string) (*net.UnixListener, error)
	// Made, if not nil, is told of the listening socket.
	Made           func(path string, l *net.UnixListener)
	RequestTimeout time.Duration // of every verb but bootstrap and join; default 10 s
	MaxConnections int           // default 64
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // may be nil
}

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	closeTimeout  = 5 * time.Second
	maxHeader     = 8 << 10
)

// errClosed is the cause that ends operations when the server closes.
var errClosed = errors.New("saltclusterd is stopping")

// Server is the admin API on one socket.
type Server struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	http    *http.Server
	group   uint32 // gid of Config.Group
	grouped bool
	ln      net.Listener // nil before Bind

	inherited bool // ln is another process's

	lineTimeout time.Duration // of one line of a long operation
	long        sync.Mutex    // held by the one long operation

	cancel context.CancelCauseFunc
	g      *errgroup.Group
	ctx    context.Context
}

// New checks the configuration and touches nothing else.
func New(cfg Config) (*Server, error) {
	if cfg.Socket == "" {
		return nil, errors.New("admin server: a socket is required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = 10 * time.Second
	}
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = 64
	}
	s := &Server{cfg: cfg, log: cfg.Logger, metrics: newMetrics(cfg.Registerer), lineTimeout: headerTimeout}
	if cfg.Group != "" {
		gid, err := lookupGroup(cfg.Group)
		if err != nil {
			return nil, fmt.Errorf("admin_group: %w", err)
		}
		s.group, s.grouped = gid, true
	}
	return s, nil
}

// Bind creates the socket. Connections wait for Open, which calls Bind itself where that was not done before.
func (s *Server) Bind(ctx context.Context) (err error) {
	if s.ln != nil {
		return nil
	}
	if s.ln, err = s.listenSocket(ctx); err != nil {
		return fmt.Errorf("admin socket %s: %w", s.cfg.Socket, err)
	}
	return nil
}

// Open serves until Close.
func (s *Server) Open(ctx context.Context) error {
	if err := s.Bind(ctx); err != nil {
		return err
	}
	if s.inherited { // for the group of our configuration, now that the other process has handed over
		if err := s.setGroup(os.Getegid()); err != nil {
			s.log.Warn("the admin socket keeps its group", "path", s.cfg.Socket, "err", err)
		}
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.g, s.ctx = errgroup.WithContext(run)
	s.http = &http.Server{
		Handler:           s.newHandler(),
		BaseContext:       func(net.Listener) context.Context { return run },
		ConnContext:       withPeer,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       2 * headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.g.Go(func() error {
		if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the admin socket: %w", err)
		}
		return nil
	})
	return nil
}

// Done is closed when the server has stopped, on its own or by Close.
func (s *Server) Done() <-chan struct{} { return s.ctx.Done() }

// Close ends running operations, waits a moment for their last words, and
// removes the socket.
func (s *Server) Close() error {
	switch {
	case s.cancel != nil:
	case s.ln != nil: // never opened
		return s.ln.Close()
	default:
		return nil
	}
	s.cancel(errClosed)
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	return s.g.Wait()
}

package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/gossip/node"
)

// Port is the node's one peer port. See the package documentation for its promises.
type Port struct {
	cfg     Config
	log     *slog.Logger
	m       *metrics
	reg     registry
	gate    gate
	guard   *joinGuard
	ways    ways
	tunnels places // for other members
	server  *http.Server
	client  *http.Client

	mu        sync.Mutex
	listeners map[string]*listener // by protocol; open ones only

	ln        net.Listener
	bound     netip.AddrPort
	advertise netip.AddrPort
	ctx       context.Context // ends with Close, or when accepting fails
	cancel    context.CancelCauseFunc
	wg        sync.WaitGroup
	closeOnce sync.Once
	retired   atomic.Bool // another process accepts
}

// NewPort checks the configuration; it touches nothing.
func NewPort(cfg Config) (*Port, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Port{cfg: cfg, log: cfg.Logger, m: newMetrics(cfg.Registerer), listeners: map[string]*listener{}}
	p.reg.init(cfg.Limits)
	p.gate.init(cfg.Limits)
	p.guard = newJoinGuard(cfg.Limits.Joins, time.Now)
	p.ways.to = map[node.ID]*way{}
	p.tunnels = places{most: cfg.Limits.Tunnels, taken: map[node.ID]int{}}
	p.server, p.client = p.newServer(), p.newClient()
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}

// Bind binds the port. Connections wait for Open, which binds the port itself unless Bind was called before.
func (p *Port) Bind(ctx context.Context) error {
	if p.ln != nil {
		return nil
	}
	listen := p.cfg.ListenWith
	if listen == nil {
		listen = (&net.ListenConfig{}).Listen
	}
	ln, err := listen(ctx, "tcp", p.cfg.Listen)
	if err != nil {
		return fmt.Errorf("open peer port: %w", err)
	}
	p.bound = ln.Addr().(*net.TCPAddr).AddrPort()
	p.bound = netip.AddrPortFrom(p.bound.Addr().Unmap(), p.bound.Port())
	host, _, _ := net.SplitHostPort(p.cfg.Listen) // checked by NewPort; the port may have been 0
	listening := net.JoinHostPort(host, strconv.Itoa(int(p.bound.Port())))
	if p.advertise, err = ResolveAdvertise(listening, p.cfg.Advertise); err != nil {
		return errors.Join(err, ln.Close())
	}
	p.ln = ln
	return nil
}

// Open serves the port until Close; ctx bounds the opening only.
func (p *Port) Open(ctx context.Context) error {
	if err := p.Bind(ctx); err != nil {
		return err
	}
	rpc, err := p.Listener(ProtoHTTP)
	if err != nil {
		return errors.Join(err, p.ln.Close())
	}
	p.wg.Go(p.acceptConnections)
	p.wg.Go(p.cutRemoved)
	p.wg.Go(func() { _ = p.server.Serve(rpc) }) // ends when rpc closes
	p.log.Info("peer port open", "addr", p.bound.String(), "advertise", p.advertise.String())
	return nil
}

// Retire stops accepting, because another process does that now. It returns when the RPC requests of peers that were
// under way have been answered, or ctx ends. Everything else continues until Close.
func (p *Port) Retire(ctx context.Context) error {
	p.retired.Store(true)
	if p.ln != nil {
		_ = p.ln.Close()
	}
	if err := p.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("retire the peer port: %w", err)
	}
	return nil
}

// Close ends the port: every connection of every protocol is cut and the contexts of running requests end. It returns
// the failure that stopped the port before, if any.
func (p *Port) Close() error {
	p.closeOnce.Do(func() {
		p.cancel(ErrClosed)
		p.ways.close()
		if p.ln != nil {
			_ = p.ln.Close() // fails only when accepting had failed before
		}
		p.reg.close()
		p.closeListeners()
		_ = p.server.Close()
		p.client.CloseIdleConnections()
	})
	p.wg.Wait()
	if cause := context.Cause(p.ctx); !errors.Is(cause, ErrClosed) {
		return cause
	}
	return nil
}

// Done is closed when the port has stopped, by Close or by a failure which Close then returns.
func (p *Port) Done() <-chan struct{} { return p.ctx.Done() }

// Addr returns the address bound. Valid after Bind.
func (p *Port) Addr() netip.AddrPort { return p.bound }

// Advertise returns the address others reach this node on, as it belongs into the roster. Valid after Bind.
func (p *Port) Advertise() netip.AddrPort { return p.advertise }

// ID returns the id of this node.
func (p *Port) ID() node.ID { return p.cfg.Identity.id }

// Revoke cuts every connection of a certificate, in both directions, and returns how many there were. Take the
// certificate out of the roster first, or the next handshake brings it back.
func (p *Port) Revoke(fp node.Fingerprint) int {
	n := p.reg.revokeCert(fp)
	p.m.revoked.Add(float64(n))
	if n > 0 {
		p.log.Info("connections of a certificate closed", "fingerprint", fp.Short(), "count", n)
	}
	return n
}

// cutRemoved cuts connections whose certificate left the roster without anyone calling Revoke.
func (p *Port) cutRemoved() {
	tick := time.NewTicker(p.cfg.Limits.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
			for _, fp := range p.reg.admittedCerts() {
				if _, ok := p.cfg.Roster.ByFingerprint(fp); !ok {
					p.Revoke(fp)
				}
			}
		}
	}
}

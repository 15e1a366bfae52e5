package sidecar

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/trace"
)

// Config is what a Proxy needs. Registerer may be nil.
type Config struct {
	Guard    *guard.Guard
	View     func() router.View // who may take a request now
	SignIn   SignIns
	Keys     Keys
	Master   Master
	Sessions Sessions
	Relay    Relay
	Epochs   Epochs
	Returns  Returns // nil: returns go to the master like everything else
	// WholeJob returns the published job whose id a minion has cut at "_" when it queued the job; empty: an id is to stay
	// as it is. nil: none is looked for.
	WholeJob func(jid, masterID string) string
	Events   Events // nil: so do events
	Files    Files  // nil: so do requests for files
	Mines    Mines  // nil: so do requests about mines
	// PillarCache says that the local master answers from its own cache of pillars.
	PillarCache bool
	Heard       *eventlog.Log // nil: the events that this node's master got are not noted
	// MasterAES is the local master's own AES key as far as it is known; nil when it is not (Intake.MasterAES).
	MasterAES func() *saltcrypt.Crypticle
	// WithoutAES says that the masters take loads which are not encrypted inside of TLS; nil: they do not.
	WithoutAES func() bool
	// Done, if not nil, is called when the local master has answered a call of a minion; it must not block. When it
	// returns a function, the minion is answered after that has returned, which should take less than the minion's
	// timeout.
	Done func(id, cmd string) (settle func(context.Context))
	// ForwardTimeout bounds a request at the local master or a peer; the minion's own timeout is usually shorter.
	ForwardTimeout time.Duration
	MaxSessions    int           // minions whose session is kept ready; 0: 50,000
	Trace          *trace.Tracer // nil: nothing is traced
	Logger         *slog.Logger
	Registerer     prometheus.Registerer
}

// Proxy carries requests of minions.
type Proxy struct {
	cfg      Config
	sessions *sessionTable
	metrics  *metrics
	catchUp  *catchUp
	copies   copyRoom
	files    *fileGate
	bodies   bodies
	handed   *handed
	pillars  pillarCache

	ctx    context.Context // ends with Close; every request at a peer or the master ends with it
	cancel context.CancelFunc
	wg     sync.WaitGroup // requests that wait for a peer

	queue   *waitQueue   // requests that wait for a master
	looking atomic.Int64 // requests that a key of the master's own is looked for
}

// NewProxy returns a proxy that is ready to serve.
func NewProxy(cfg Config) *Proxy {
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = 50_000
	}
	if cfg.ForwardTimeout == 0 {
		cfg.ForwardTimeout = 5 * time.Minute
	}
	p := &Proxy{
		cfg:      cfg,
		sessions: newSessionTable(cfg.MaxSessions, cfg.Keys.Session, cfg.Keys.Generation),
		metrics:  newMetrics(cfg.Registerer),
		catchUp:  newCatchUp(cfg.Keys.CatchUp),
		files:    newFileGate(),
		queue:    newWaitQueue(),
	}
	p.sessions.minion = cfg.Guard.Minion
	p.handed = newHanded(cfg.Logger, p.metrics.handed)
	p.registerQueues(cfg.Registerer)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends what is still under way and waits for it.
func (p *Proxy) Close() error {
	p.cancel()
	p.wg.Wait()
	return nil
}

// ServeReq takes a request from this node's 4506 (edge.ReqHandler). It does not wait for the answer.
func (p *Proxy) ServeReq(_ context.Context, r *edge.Request) {
	x := &request{body: r.Body, remote: r.Remote, at: r.Received, to: edgeResponder{r},
		proves: func(id string) bool { return r.Identity().Has(id) }}
	x.traceBy(p.cfg.Trace, trace.Parent{})
	p.openRequest(x)
}

// ServeRelayed takes a request that a node relayed (relay.Receiver).
func (p *Proxy) ServeRelayed(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	x := &request{body: body, remote: remote, from: from, at: time.Now(),
		to: &peerResponder{ctx, to, p.handed.refusalFunc(from)}}
	if parent := trace.ParentOf(ctx); parent.Sampled() { // the node that the minion has called decides
		x.traceBy(p.cfg.Trace, parent)
	}
	p.openRequest(x)
}

// ServeSignIn takes a sign-in that a node relayed (relay.Receiver).
func (p *Proxy) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	p.openRequest(&request{
		body: body, remote: remote, from: from, signIn: true, at: time.Now(),
		to: &peerResponder{ctx, to, p.handed.refusalFunc(from)},
	})
}

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
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
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
	// WholeJob returns the published job whose id a minion has cut at "_" when it queued the job; empty: an id is to stay as it is. nil:
	// none is looked for.
	WholeJob func(jid, masterID string) string
	Events   Events // nil: so do events
	Files    Files  // nil: so do requests for files
	Mines    Mines  // nil: so do requests about mines
	// PillarCache says that the local master answers from its own cache of pillars.
	PillarCache bool
	Heard       *eventlog.Log // nil: nobody remembers which events this node's master got
	// MasterAES is the local master's own AES key as far as it is known; nil when it is not (Intake.MasterAES).
	MasterAES func() *saltcrypt.Crypticle
	// Done, if not nil, is called when the local master has answered a call of a minion; it must not block. When it returns a
	// function, the minion is answered after that has returned, which should take less than the minion's patience.
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

	room    *waitingRoom // requests that wait for a master
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
		room:     newWaitingRoom(),
	}
	p.sessions.minion = cfg.Guard.Minion
	p.handed = newHanded(cfg.Logger, p.metrics.handed)
	p.watch(cfg.Registerer)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends what is still under way and waits for it.
func (p *Proxy) Close() error {
	p.cancel()
	p.wg.Wait()
	return nil
}

// exchange is one request on its way and the hands that take its answer.
type exchange struct {
	body   []byte
	remote netip.AddrPort
	from   node.ID // the peer that relayed it; empty: it came from the network
	at     time.Time
	reply  func([]byte)
	lend   func(body []byte, back func([]byte)) // reply with a body that is given back, see edge.Request.ReplyLent; nil: not here
	drop   func()
	// pass is drop of a request that a peer has handed over and with which nothing was done, because the master is down or for another
	// reason; nil: it came from the network
	pass  func(down bool)
	gone  func() bool
	blame func() // notes that it was refused; nil: nobody minds
	// known notes whose request it certainly is; linger takes room for one that waits before that is certain. nil: a peer has handed it over.
	known  func(minion string)
	linger func() bool

	trace *trace.Request // nil: it is not traced

	signIn   bool // relayed as a sign-in: it may be nothing else
	caughtUp bool // it has waited for news of the cluster
}

// traceBy traces an exchange from here on, if it is one of those that are traced.
func (x *exchange) traceBy(t *trace.Tracer, parent trace.Parent) {
	r := t.Begin(x.at, parent)
	if r == nil {
		return
	}
	reply, drop := x.reply, x.drop
	x.trace = r
	x.reply, x.lend = func(body []byte) { reply(body); r.End(len(body)) }, nil
	x.drop = func() { drop(); r.End(-1) }
	if pass := x.pass; pass != nil {
		x.pass = func(down bool) { pass(down); r.End(-1) }
	}
	r.Step("open")
}

// ServeReq takes a request from this node's 4506 (edge.ReqHandler). It does not wait for the answer.
func (p *Proxy) ServeReq(_ context.Context, r *edge.Request) {
	x := &exchange{body: r.Body, remote: r.Remote, at: r.Received, reply: r.Reply, lend: r.ReplyLent, drop: r.Drop, gone: r.Gone, blame: r.Refused,
		known: r.Authenticated, linger: r.Linger}
	x.traceBy(p.cfg.Trace, trace.Parent{})
	p.serve(x)
}

// ServeRelayed takes a request that a peer handed over (relay.Receiver).
func (p *Proxy) ServeRelayed(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	x := &exchange{
		body: body, remote: remote, from: from, at: time.Now(), reply: to.Reply, drop: to.Drop, pass: to.Pass,
		gone: func() bool { return ctx.Err() != nil }, blame: p.handed.by(from),
	}
	if parent := trace.ParentOf(ctx); parent.Sampled() { // the node that the minion has called decides
		x.traceBy(p.cfg.Trace, parent)
	}
	p.serve(x)
}

// ServeSignIn takes a sign-in that a peer handed over (relay.Receiver).
func (p *Proxy) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	p.serve(&exchange{
		body: body, remote: remote, from: from, signIn: true, at: time.Now(), reply: to.Reply, drop: to.Drop, pass: to.Pass,
		gone: func() bool { return ctx.Err() != nil }, blame: p.handed.by(from),
	})
}

func (p *Proxy) serve(x *exchange) {
	env, err := saltwire.ParseEnvelope(x.body)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckEnvelope(env, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	if x.from != "" && x.signIn != (env.Enc == saltwire.EncClear) { // each kind comes its own way
		p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonRelayedClear, "", x.remote))
		return
	}
	if env.Enc == saltwire.EncClear {
		p.serveClear(x, env)
		return
	}
	p.serveAES(x, env)
}

// serveClear takes what is not encrypted: sign-ins, ping, and what an operator allowed.
func (p *Proxy) serveClear(x *exchange, env saltwire.Envelope) {
	peek, err := saltwire.PeekLoad(env.Load)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if peek.Cmd != "_auth" {
		if x.from != "" { // no node relays these, and the address they came from is that node's word only
			p.refuse(x, p.cfg.Guard.Refuse(guard.ReasonRelayedClear, "", x.remote))
			return
		}
		if r := p.cfg.Guard.CheckClear(peek.Cmd, x.remote); r != nil {
			p.refuse(x, r)
			return
		}
		if peek.Cmd == "ping" { // echoes its load (ClearFuncs.ping): nothing unauthenticated has to reach a master for that
			p.metrics.request(peek.Cmd, "answer")
			x.reply(env.Load)
			return
		}
		p.metrics.request(peek.Cmd, "local")
		p.forwardRaw(x, peek.Cmd)
		return
	}
	p.serveAuth(x, env)
}

// serveAuth takes a sign-in, a minion's own or one that a peer relayed.
func (p *Proxy) serveAuth(x *exchange, env saltwire.Envelope) {
	if len(x.body) > relay.MaxSignIn { // the master reads all of it, also what no Salt has put there
		p.refuse(x, p.cfg.Guard.Malformed(&saltwire.Refused{Reason: saltwire.ReasonSize}, x.remote))
		return
	}
	auth, err := saltwire.ParseAuth(env.Load)
	if err != nil {
		p.refuse(x, p.cfg.Guard.Malformed(err, x.remote))
		return
	}
	if r := p.cfg.Guard.CheckAuth(auth, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	if r := p.cfg.Guard.CheckVersion(auth.ID, auth.Pub, env.Version, x.remote); r != nil {
		p.refuse(x, r)
		return
	}
	route := "local"
	if x.from != "" {
		route = "relayed"
	}
	p.metrics.request("_auth", route)
	x.trace.Command("_auth", auth.ID)
	x.trace.Step("sign-in")
	p.signIn(x, &signin.Request{
		Auth: auth, Raw: x.body, Remote: x.remote, Relayed: x.from != "", Reply: x.reply, Drop: x.drop, Gone: x.gone, At: x.at,
	})
}

// forwardRaw hands a clear request to the local master as it is.
func (p *Proxy) forwardRaw(x *exchange, cmd string) {
	p.cfg.Master.Go(p.ctx, p.until(x), x.remote.Addr().String(), x.body, func(reply []byte, err error) {
		if err != nil {
			p.lose(x, cmd, "local", err)
			return
		}
		x.reply(reply)
	})
}

// refuse answers a request with what the refusal says, or not at all.
func (p *Proxy) refuse(x *exchange, r *guard.Refusal) {
	x.refused()
	if r.Answer == nil {
		x.drop()
		return
	}
	x.reply(r.Answer)
}

// refused tells where a request came from that it was.
func (x *exchange) refused() {
	if x.blame != nil {
		x.blame()
	}
}

// authenticated tells where a request came from that it is certainly that minion's.
func (x *exchange) authenticated(minion string) {
	if x.known != nil {
		x.known(minion)
	}
}

// mayLinger says whether there is room for a request to wait before it is certain who has sent it.
func (x *exchange) mayLinger() bool { return x.linger == nil || x.linger() }

// lose gives up a request that was fine: the minion tries again by itself.
func (p *Proxy) lose(x *exchange, cmd, where string, err error) {
	p.metrics.unanswered(cmd, where)
	x.trace.Failed()
	p.cfg.Logger.Warn("request not answered", "remote", x.remote, "to", where, "err", err)
	x.drop()
}

// longPatience is how long a minion waits for an answer by Salt's defaults: request_channel_tries times request_channel_timeout. Until then a
// request that a worker of the master works on is sent to no other master, which would only do the same work again.
const longPatience = 3 * time.Minute

// LongPatience is the time that a call which may take long has (router.Long) where forwarded requests have forwardTimeout.
func LongPatience(forwardTimeout time.Duration) time.Duration {
	return max(forwardTimeout, longPatience)
}

// untilLong is until for a call, which may be one that takes long.
func (p *Proxy) untilLong(c *call) time.Time {
	if router.Long(c.peek.Cmd) {
		return c.at.Add(LongPatience(p.cfg.ForwardTimeout))
	}
	return p.until(c.exchange)
}

// deadline bounds a request from its arrival on. It outlives the reader of the connection it came on.
func (p *Proxy) deadline(x *exchange) (context.Context, context.CancelFunc) {
	return context.WithDeadline(p.ctx, p.until(x))
}

// until is the end of deadline.
func (p *Proxy) until(x *exchange) time.Time { return x.at.Add(p.cfg.ForwardTimeout) }

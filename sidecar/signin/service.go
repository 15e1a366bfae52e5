package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// Standing is what consensus knows of a minion's key.
type Standing struct {
	Pub      string // text of the key
	Accepted bool
	Known    bool   // the cluster knows a key of that id, in whatever state; Pub is its text
	Pending  bool   // it waits for acceptance
	Rev      uint64 // the precondition of a proposal: revision of the key or of its tombstone
	Seen     uint64 // revision of consensus at which this was the standing
}

// Keys is the cluster's view of minion keys.
type Keys interface {
	Standing(id string) Standing
	// Accept makes pub the accepted key of id unless its standing is another one than st now. It returns ErrChanged when
	// it has, and ErrNoQuorum when that cannot be decided now.
	Accept(ctx context.Context, id, pub string, st Standing) error
	// Settled waits until the local master's key files are at least as new as consensus is now, so that what the
	// master answers is not founded on a key that was deleted elsewhere; ErrNoQuorum when that cannot be known.
	Settled(ctx context.Context) error
	// Generation numbers the seed that Session derives from; it grows.
	Generation() uint64
	// Session returns the session key of a minion with that accepted key.
	Session(id, pub string) saltcrypt.Key
	// CatchUp waits until this node knows what the cluster knew when it was called.
	CatchUp(ctx context.Context) error
}

var (
	// ErrChanged says that the key changed since it was looked at.
	ErrChanged = errors.New("the key changed meanwhile")
	// ErrNoQuorum says that key decisions cannot be made now.
	ErrNoQuorum = errors.New("no quorum for key decisions")
)

// Master is the local stock master, which decides what is not decided here (upstream.ReqClient).
type Master interface {
	Do(ctx context.Context, body []byte) ([]byte, error)
}

// Config is what a Service needs. PubSigner, Way, Peers, Event, SignedIn, Pinned and Registerer may be nil.
type Config struct {
	Identity    Identity
	PubSigner   func() PubSigner // it and what it returns may be nil: master_sign_pubkey is off
	PublishPort int              // port that minions are told to subscribe at
	Epochs      interface {
		ForSignIn(id string) *epochs.Material
	}
	Keys   Keys
	Master Master
	// Way says who decides a sign-in that is not ours: whether the local master is to be asked, and the nodes whose
	// masters can, in order, when that cannot. nil: only the local master can.
	Way   func(id string) (here bool, others []node.ID)
	Peers Peers
	// Sessions writes the session key file of a minion before its sign-in reaches the master, which would make a key of
	// its own and, on 3006, keep it (localmaster.Sessions).
	Sessions interface {
		Ensure(id string, want saltcrypt.Key) (local saltcrypt.Key, same bool, err error)
		// Discard undoes it: the sign-in was not accepted.
		Discard(id string, key saltcrypt.Key) error
	}
	AskAll func() bool                // every sign-in needs the master's word (max_minions counts connections); nil: none
	Event  func(saltwire.AuthRequest) // fires salt/auth for a sign-in answered here
	// SignedIn hears of each sign-in that is let in, before its reply is sent; token is the secret that the minion's
	// process has shown, nil when it has shown none. false: it must not be answered here and now.
	SignedIn func(id string, token []byte) bool
	Pinned   func(id, pub string, p Pin) // hears which master key the owner of an accepted key has pinned
	CPUs     int                         // 0: GOMAXPROCS
	Share    float64                     // of them that sign-ins may use at most; 0: a half
	Queue    int                         // sign-ins waiting at most; 0: 8192
	// a known one that waited longer is answered after other known ones; 0: 4.5 s, just below the minion's auth_timeout
	LateAfter  time.Duration
	Newcomers  Newcomers
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Request is one sign-in. Exactly one of Reply and Drop is called.
type Request struct {
	Auth    saltwire.AuthRequest
	Raw     []byte // the request as it came, to be given to the local master
	Remote  netip.AddrPort
	Relayed bool // a peer handed it over, whose master cannot take it
	Reply   func([]byte)
	Drop    func()
	Gone    func() bool // the minion has hung up
	At      time.Time
}

// Service answers sign-ins.
type Service struct {
	cfg        Config
	replier    replier
	metrics    *metrics
	parsed     *keyCache
	queue      *queue
	budget     atomic.Pointer[budget] // nil before Open
	turn       *turnstile
	relayLimit *relayLimit
	asking     chan struct{} // a token per sign-in that waits for the master
	full       atomic.Int64  // when it was last said that too many keys are pending, Unix seconds

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New returns a Service that answers nothing before Open.
func New(cfg Config) *Service {
	if cfg.CPUs == 0 {
		cfg.CPUs = runtime.GOMAXPROCS(0)
	}
	if cfg.Share == 0 {
		cfg.Share = 0.5
	}
	if cfg.Queue == 0 {
		cfg.Queue = 8192
	}
	if cfg.LateAfter == 0 {
		cfg.LateAfter = 4500 * time.Millisecond
	}
	if cfg.PubSigner == nil {
		cfg.PubSigner = func() PubSigner { return nil }
	}
	if cfg.AskAll == nil {
		cfg.AskAll = func() bool { return false }
	}
	s := &Service{
		cfg: cfg,
		replier: replier{
			identity: cfg.Identity, pubSigner: cfg.PubSigner, publishPort: cfg.PublishPort, pinned: cfg.Pinned,
		},
		parsed:     newKeyCache(maxParsed),
		queue:      newQueue(cfg.Queue, cfg.LateAfter, time.Now),
		turn:       newTurnstile(cfg.Newcomers, time.Now),
		relayLimit: newRelayLimit(time.Now),
		asking:     make(chan struct{}, maxAsking),
	}
	s.metrics = newMetrics(cfg.Registerer, s)
	return s
}

// Open measures what a sign-in costs and starts the workers; they end with Close, not with ctx. Sign-ins that wait for
// the master have goroutines of their own.
func (s *Service) Open(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	cost, err := s.replier.measureCost()
	if err != nil {
		return err
	}
	b := newBudget(s.cfg.CPUs, s.cfg.Share, cost, time.Now)
	s.budget.Store(b)
	for range cap(b.slots) {
		s.wg.Go(func() { s.runWorker(s.ctx) })
	}
	return nil
}

// Close gives up what waits and returns when nothing runs any more.
func (s *Service) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	for _, r := range s.queue.close() {
		r.Drop()
	}
	return nil
}

// Answer has minions that have pinned another identity answered under it; nil: no minion is.
func (s *Service) Answer(another *Another) { s.replier.another.Store(another) }

// Parsed says that a text is that of a public key which was parsed for a sign-in lately.
func (s *Service) Parsed(pub string) bool { return s.parsed.hasKey(pub) }

// Rate is how many sign-ins of accepted keys this node answers per second at most, as measured lately; 0 before Open.
func (s *Service) Rate() float64 {
	if b := s.budget.Load(); b != nil {
		return b.signInRate()
	}
	return 0
}

// Backlog is about how long the last of the accepted keys that wait now will have waited. What the first of them has
// waited counts as well: the share of the CPUs that the rate is reckoned from is not always there. Strangers, who come
// after them, do not count: publications wait for a rotation, and that waits while there is a backlog.
func (s *Service) Backlog() time.Duration {
	waited := s.queue.oldestAge()
	if rate := s.Rate(); rate > 0 {
		return max(waited, time.Duration(float64(s.queue.countKnown())/rate*float64(time.Second)))
	}
	return waited
}

// Serve takes a validated sign-in. It does not block: when there are too many, some are dropped, and their minions try
// again.
func (s *Service) Serve(r *Request) {
	if r.Relayed && !s.relayLimit.admitRelayed(r) {
		s.dropAll([]*Request{r}, "too_many_relayed")
		return
	}
	st := s.cfg.Keys.Standing(r.Auth.ID)
	shed, outcome := s.queue.putRequest(r, s.isOurs(st, r))
	s.dropAll(shed, outcome)
}

// isOurs says whether a sign-in is answered without asking the master.
func (s *Service) isOurs(st Standing, r *Request) bool {
	return st.Accepted && !s.cfg.AskAll() && saltcrypt.SameKey(st.Pub, r.Auth.Pub)
}

func (s *Service) dropAll(all []*Request, outcome string) {
	for _, r := range all {
		r.Drop()
		s.metrics.countOutcome(outcome)
	}
}

// maxAsking bounds the sign-ins that wait for the master: strangers must not fill its queue.
const maxAsking = 256

func (s *Service) runWorker(ctx context.Context) {
	for ctx.Err() == nil {
		mayAsk := s.mayAsk()
		l, r, gone := s.queue.takeRequest(mayAsk)
		s.dropAll(gone, "gone")
		if l != nil {
			s.metrics.observeWait(r)
			mayAsk = s.serveRequest(ctx, l, r, mayAsk)
		}
		if mayAsk {
			<-s.asking
		}
		if l == nil {
			select {
			case <-ctx.Done():
			case <-s.queue.wake:
			}
		}
	}
}

// mayAsk takes a token for asking the master, if there is one.
func (s *Service) mayAsk() bool {
	select {
	case s.asking <- struct{}{}:
		return true
	default:
		return false
	}
}

// serveRequest answers one sign-in, or hands it to a goroutine of its own when it has to wait for the master. It
// returns whether the token for asking is still there.
func (s *Service) serveRequest(ctx context.Context, l *line, r *Request, mayAsk bool) bool {
	st := s.cfg.Keys.Standing(r.Auth.ID)
	switch {
	case s.isOurs(st, r):
		s.acceptRequest(ctx, l, r, "accepted")
		return mayAsk
	case !mayAsk: // it was accepted when it came
		s.queue.putBack(l)
		return false
	case s.heldBack(ctx, l, r, st):
		return true
	}
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		s.askForDecision(ctx, l, r)
		<-s.asking
		s.queue.wakeWorker()
	})
	return false
}

// heldBack deals with the sign-in of a key that is not accepted when the limits do not let it in now; false: it may
// proceed.
func (s *Service) heldBack(ctx context.Context, l *line, r *Request, st Standing) bool {
	known := st.Known && saltcrypt.SameKey(st.Pub, r.Auth.Pub)
	if known && st.Accepted {
		return false
	}
	limit := ""
	if known {
		limit = s.turn.admitRepeated(r.Remote.Addr())
	} else {
		limit = s.turn.admitNewcomer(r.Remote.Addr(), r.Auth.ID)
	}
	if limit == "" {
		return false
	}
	s.warnHeldBack(limit)
	var reply []byte
	if (!st.Known || known && st.Pending) && s.turn.mayAnswer(r.Remote.Addr(), known) {
		var err error
		s.spendShare(ctx, func() { reply, err = s.replier.buildPending(r.Auth) })
		if err != nil {
			s.cfg.Logger.Error("sign-in not answered", "minion", r.Auth.ID, "err", err)
		}
	}
	s.finishRequest(l, r, reply, limit)
	return true
}

// cryEvery is how often an operator is told that sign-ins are held back, in seconds.
const cryEvery = 60

func (s *Service) warnHeldBack(limit string) {
	now, last := time.Now().Unix(), s.full.Load()
	if now-last >= cryEvery && s.full.CompareAndSwap(last, now) {
		s.cfg.Logger.Warn("new minions have to wait", "reason", limit)
	}
}

// spendShare computes a sign-in when it may use the CPU; f does not run when the service ends before.
func (s *Service) spendShare(ctx context.Context, f func()) bool {
	return s.budget.Load().spendShare(ctx, f)
}

// acceptRequest builds the accepting reply of a sign-in and answers every try with it.
func (s *Service) acceptRequest(ctx context.Context, l *line, r *Request, outcome string) {
	var a acceptance
	if !s.spendShare(ctx, func() { s.buildReply(&a, r.Auth) }) {
		outcome = "given_up"
	}
	if a.reply != nil && s.cfg.SignedIn != nil && !s.cfg.SignedIn(r.Auth.ID, a.token) {
		a.reply, outcome = nil, "not_told"
	}
	switch {
	case errors.Is(a.err, ErrChanged):
		s.cfg.Logger.Warn("sign-in not answered", "minion", r.Auth.ID, "err", a.err)
		outcome = "undecided"
	case a.err != nil:
		s.cfg.Logger.Error("sign-in not answered", "minion", r.Auth.ID, "err", a.err)
		outcome = "error"
	}
	if s.finishRequest(l, r, a.reply, outcome) && s.cfg.Event != nil && outcome == "accepted" {
		s.cfg.Event(r.Auth)
	}
}

func (s *Service) buildReply(a *acceptance, auth saltwire.AuthRequest) {
	began := time.Now()
	if a.err = s.prepareReply(a, auth); a.err == nil {
		s.replier.buildAccepted(a)
	}
	s.metrics.seconds.Observe(time.Since(began).Seconds())
}

// prepareReply has what a reply is made of. Since it was found that the key is accepted the sign-in may have waited,
// for the master or for its share of the CPUs, and the key may have been taken away. The epoch that begins for that
// reason must not be told to it, so the key is looked at once more, after the epoch: one that was still accepted then
// has at most the epoch before that.
func (s *Service) prepareReply(a *acceptance, auth saltwire.AuthRequest) (err error) {
	a.req = auth
	if a.key, err = s.parsed.findKey(auth.Pub); err != nil {
		return err
	}
	if a.epoch = s.cfg.Epochs.ForSignIn(auth.ID); a.epoch == nil {
		return errors.New("no epoch in force")
	}
	if st := s.cfg.Keys.Standing(auth.ID); !st.Accepted || !saltcrypt.SameKey(st.Pub, auth.Pub) {
		return ErrChanged
	}
	a.session = a.key.sessionText(auth.ID, auth.Pub, s.cfg.Keys)
	return nil
}

// finishRequest answers (or, with a nil reply, drops) all tries of a sign-in. It reports whether any was answered.
func (s *Service) finishRequest(l *line, r *Request, reply []byte, outcome string) bool {
	tries := s.queue.endRequest(l, r.Auth.Nonce)
	for _, t := range tries {
		if reply == nil {
			t.Drop()
		} else {
			t.Reply(reply)
		}
	}
	s.metrics.countOutcome(outcome)
	if len(tries) > 1 {
		s.metrics.outcomes.WithLabelValues("coalesced").Add(float64(len(tries) - 1))
	}
	return reply != nil && len(tries) > 0
}

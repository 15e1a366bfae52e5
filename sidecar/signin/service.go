package signin

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// Standing is what consensus knows of a minion's key.
type Standing struct {
	Pub      string // text of the accepted key
	Accepted bool
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
	// Session returns the session key of a minion with that accepted key.
	Session(id, pub string) saltcrypt.Key
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

// Config is what a Service needs. PubSigner, Event and Registerer may be nil.
type Config struct {
	Identity    Identity
	PubSigner   PubSigner
	PublishPort int // port that minions are told to subscribe at
	Epochs      interface {
		ForSignIn(id string) *epochs.Material
	}
	Keys   Keys
	Master Master
	// Sessions writes the session key file of a minion before its sign-in reaches the master, which would make a key of
	// its own and, on 3006, keep it (localmaster.Sessions).
	Sessions interface {
		Ensure(id string, want saltcrypt.Key) (local saltcrypt.Key, same bool, err error)
		// Discard undoes it: the sign-in was not accepted.
		Discard(id string, key saltcrypt.Key) error
	}
	AskAll  bool                 // every sign-in needs the master's word (max_minions counts connections)
	Event   func(id, pub string) // fires salt/auth for a sign-in answered here
	Workers int                  // sign-ins computed at a time; 0: one per CPU
	Queue   int                  // sign-ins waiting at most; 0: 4096
	MaxWait time.Duration        // one that waited longer is given up; 0: 5 s, the minion's auth_timeout
	Logger  *slog.Logger

	Registerer prometheus.Registerer
}

// Request is one sign-in. Exactly one of Reply and Drop is called.
type Request struct {
	Auth  saltwire.AuthRequest
	Raw   []byte // the request as it came, for the local master
	Reply func([]byte)
	Drop  func()
	Gone  func() bool // the minion has hung up
	At    time.Time
}

// Service answers sign-ins.
type Service struct {
	cfg     Config
	replier replier
	metrics *metrics
	parsed  *keyCache
	compute chan struct{} // a token per sign-in that may compute
	asking  chan struct{} // a token per sign-in that waits for the master

	mu      sync.Mutex
	pending map[flight][]*Request // sign-ins being answered, with the same sign-in's later tries
	share   map[party]int         // how many of them are one minion's
	ctx     context.Context
	cancel  context.CancelFunc
	queue   chan flight
	wg      sync.WaitGroup
}

// flight names one sign-in across its tries: a minion repeats its nonce (salt/crypt.py AsyncAuth.sign_in).
type flight struct{ id, nonce, pub string }

// party is who signs in. Who only knows the id of a minion is not the same party as the minion.
type party struct{ id, pub string }

func (f flight) party() party { return party{f.id, f.pub} }

// New returns a Service that answers nothing before Open.
func New(cfg Config) *Service {
	if cfg.Workers == 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Queue == 0 {
		cfg.Queue = 4096
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 5 * time.Second
	}
	return &Service{
		cfg:     cfg,
		replier: replier{identity: cfg.Identity, pubSigner: cfg.PubSigner, publishPort: cfg.PublishPort},
		metrics: newMetrics(cfg.Registerer),
		parsed:  newKeyCache(maxParsed),
		compute: make(chan struct{}, cfg.Workers),
		asking:  make(chan struct{}, maxAsking),
		pending: map[flight][]*Request{},
		share:   map[party]int{},
		queue:   make(chan flight, cfg.Queue),
	}
}

// Open starts the workers; they end with Close, not with ctx. Sign-ins that wait for the master have goroutines of
// their own.
func (s *Service) Open(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for range s.cfg.Workers {
		s.wg.Go(func() { s.work(s.ctx) })
	}
	return nil
}

// Close gives up what waits and returns when nothing runs any more.
func (s *Service) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, reqs := range s.pending {
		for _, r := range reqs {
			r.Drop()
		}
		delete(s.pending, f)
	}
	return nil
}

// Serve takes a validated sign-in. It does not block: one too many is dropped, and the minion tries again.
func (s *Service) Serve(r *Request) {
	f := flight{r.Auth.ID, r.Auth.Nonce, r.Auth.Pub}
	s.mu.Lock()
	if tries, ok := s.pending[f]; ok {
		if len(tries) < maxTries {
			s.pending[f] = append(tries, r)
			s.mu.Unlock()
			s.metrics.outcome("coalesced")
			return
		}
		s.mu.Unlock()
		s.giveUp(r, "too_many_tries")
		return
	}
	if s.share[f.party()] >= maxShare {
		s.mu.Unlock()
		s.giveUp(r, "too_many_sign_ins")
		return
	}
	s.pending[f] = []*Request{r}
	s.share[f.party()]++
	s.mu.Unlock()
	select {
	case s.queue <- f:
	default:
		s.finish(f, nil, "queue_full")
	}
}

// maxAsking bounds the sign-ins that wait for the master: strangers must not fill its queue.
const maxAsking = 256

// maxTries bounds how many tries of one sign-in are answered together; a minion makes seven.
const maxTries = 8

// maxShare bounds the sign-ins of one minion that are answered at a time. It makes one, salt-call beside it another; one
// that makes thousands must not fill the queue that all the others wait in, at two RSA operations each.
const maxShare = 16

func (s *Service) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-s.queue:
			s.serve(ctx, f)
		}
	}
}

// serve answers one sign-in, or hands it to a goroutine of its own when it has to wait for the master.
func (s *Service) serve(ctx context.Context, f flight) {
	r := s.latest(f)
	switch {
	case r == nil:
		s.finish(f, nil, "gone")
		return
	case time.Since(r.At) > s.cfg.MaxWait:
		s.finish(f, nil, "late")
		return
	}
	st := s.cfg.Keys.Standing(r.Auth.ID)
	if st.Accepted && !s.cfg.AskAll && sameKey(st.Pub, r.Auth.Pub) {
		s.accept(f, r.Auth, "accepted")
		return
	}
	select {
	case s.asking <- struct{}{}:
	default:
		s.finish(f, nil, "master_busy")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	s.wg.Go(func() {
		defer func() { <-s.asking; cancel() }()
		s.ask(ctx, f, r)
	})
}

// latest returns the newest try whose minion still listens, nil when all have hung up.
func (s *Service) latest(f flight) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	tries := s.pending[f]
	for i := len(tries) - 1; i >= 0; i-- {
		if !tries[i].Gone() {
			return tries[i]
		}
	}
	return nil
}

// accept builds the accepting reply and answers every try with it.
func (s *Service) accept(f flight, auth saltwire.AuthRequest, outcome string) {
	s.compute <- struct{}{}
	reply, err := s.build(auth)
	<-s.compute
	if err != nil {
		s.cfg.Logger.Error("sign-in not answered", "minion", auth.ID, "err", err)
		s.finish(f, nil, "error")
		return
	}
	if s.finish(f, reply, outcome) && s.cfg.Event != nil && outcome == "accepted" {
		s.cfg.Event(auth.ID, auth.Pub)
	}
}

func (s *Service) build(auth saltwire.AuthRequest) ([]byte, error) {
	began := time.Now()
	key, err := s.parsed.get(auth.Pub)
	if err != nil {
		return nil, err
	}
	epoch := s.cfg.Epochs.ForSignIn(auth.ID)
	if epoch == nil {
		return nil, errors.New("no epoch in force")
	}
	reply, err := s.replier.accept(auth, key, epoch, s.cfg.Keys.Session(auth.ID, auth.Pub))
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	return reply, err
}

// finish answers (or, with a nil reply, drops) all tries of a sign-in. It reports whether any was answered.
func (s *Service) finish(f flight, reply []byte, outcome string) bool {
	s.mu.Lock()
	tries := s.pending[f]
	delete(s.pending, f)
	if s.share[f.party()]--; s.share[f.party()] <= 0 {
		delete(s.share, f.party())
	}
	s.mu.Unlock()
	for _, r := range tries {
		if reply == nil {
			r.Drop()
		} else {
			r.Reply(reply)
		}
	}
	s.metrics.outcome(outcome)
	return reply != nil && len(tries) > 0
}

func (s *Service) giveUp(r *Request, outcome string) {
	r.Drop()
	s.metrics.outcome(outcome)
}

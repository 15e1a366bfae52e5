package fanout

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
	"saltclusterd/signal"
)

// MaxAge is how old a publication may be when a peer or a minion gets it: a command is not run long after it was given.
// A minion needs up to 22 s to connect again (recon_default, recon_max, and what libzmq adds), when it knows that it
// has to.
const MaxAge = 60 * time.Second

const (
	// outboxRecords leaves room for publications beside the starts of a fleet after a power cut: each sign-in of a new
	// process is a record.
	outboxRecords = 1 << 17
	outboxBytes   = 64 << 20
	// lateCount is well below what a minion remembers (minion_jid_queue_hwm, 100).
	lateCount = 80
	lateBytes = 2 << 20
)

var errNoEpoch = errors.New("no epoch in force")

// Publisher is this node's 4505 (edge.PubEdge).
type Publisher interface {
	Publish(edge.Publication)
	Arrived() <-chan struct{}
	Newcomers() (come, moved []edge.Newcomer)
	AllSubscribers() []edge.Newcomer
	Give([]edge.Newcomer, []edge.Publication) int
}

// Config is what a hub needs. Withhold, Away, Minority, NotLate, LeaveOut, Elapsed, Registerer and Algorithm may be
// nil.
type Config struct {
	Self   node.ID
	Edge   Publisher
	Epochs Epochs
	Signer Signer
	// publish_signing_algorithm; empty when the master does not sign publications; nil: it never does
	Algorithm func() string
	Clock     *hlc.Clock
	HTTP      *http.Client                          // the peer port's client
	Ways      Ways                                  // of that client; nil: peers are reached directly
	From      func(context.Context) (node.ID, bool) // which peer a request came from
	// called before the publication leaves, so that no return is faster
	JobSeen func(jid string, origin node.ID, plain []byte)
	// Hold waits, not for long, while a minion whose key was taken away holds the epoch in force.
	Hold func()
	// Withhold reports whether this node has known for too long that it lacks what the cluster has decided: a revocation,
	// perhaps. Its subscribers get nothing then, of its own master neither; peers do. nil: never.
	Withhold func() bool
	// Away reports whether a node is taken to be out of reach of all others. nil: never.
	Away func(node.ID) bool
	// Minority reports whether this node may be one of a few that the others do not reach. nil: never.
	Minority func() bool
	// NotLate reports whether nothing may be given late: a syndic remembers no jobs. nil: everything may.
	NotLate func() bool
	// LeaveOut returns, sorted, the minions that must not be given what was published so long ago: started, of which a
	// process has signed in since, and others that are known to have started. nil: only started.
	LeaveOut   func(started []string, age time.Duration) []string
	SignedIn   func(id string, epoch uint64) // a peer answered a sign-in inside a rotation's window
	Elapsed    func() time.Duration          // nil: hlc.Elapsed
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Hub is the fan-out of one node.
type Hub struct {
	cfg     Config
	run     string
	out     *outbox
	in      *inbox
	metrics *metrics

	memory      *late.Memory
	processes   *late.Processes
	beats       beats
	busy        atomic.Bool   // some subscribers have not been given what they may have missed
	again       chan struct{} // holds one: all subscribers are to be given it
	overdueGrew chan struct{} // holds one: overdue has grown

	overdueMu sync.Mutex
	overdue   []overdue

	sealMu sync.Mutex // serials reach the edge in the order in which they were stamped
	sealer sealer

	mu     sync.Mutex
	ctx    context.Context // nil before Open and after Close
	cancel context.CancelFunc
	links  map[node.ID]*linked
	wg     sync.WaitGroup
}

// linked is a link that is kept.
type linked struct {
	cancel  context.CancelFunc
	refused *refusals
	beat    chan struct{} // asks for a heartbeat; capacity 1
}

// New returns a hub without links; nothing runs before Open.
func New(cfg Config) *Hub {
	if cfg.Withhold == nil {
		cfg.Withhold = func() bool { return false }
	}
	never := func() bool { return false }
	if cfg.Away == nil {
		cfg.Away = func(node.ID) bool { return false }
	}
	if cfg.Minority == nil {
		cfg.Minority = never
	}
	if cfg.NotLate == nil {
		cfg.NotLate = never
	}
	if cfg.LeaveOut == nil {
		cfg.LeaveOut = func(started []string, _ time.Duration) []string { return started }
	}
	if cfg.Ways == nil {
		cfg.Ways = direct{}
	}
	if cfg.Algorithm == nil {
		cfg.Algorithm = func() string { return "" }
	}
	if cfg.Elapsed == nil {
		cfg.Elapsed = hlc.Elapsed
	}
	h := &Hub{
		cfg:     cfg,
		run:     rand.Text(),
		metrics: newMetrics(cfg.Registerer),
		sealer:  sealer{epochs: cfg.Epochs, signer: cfg.Signer, algorithm: cfg.Algorithm, clock: cfg.Clock},
		links:   map[node.ID]*linked{},

		again:       make(chan struct{}, 1),
		overdueGrew: make(chan struct{}, 1),
	}
	began, base := cfg.Elapsed(), time.Now().Round(0)
	h.beats = newBeats(func() time.Time { return base.Add(h.cfg.Elapsed() - began) })
	h.out = newOutbox(outboxRecords, outboxBytes, MaxAge, h.now)
	h.memory = late.NewMemory(late.Limits{Age: MaxAge, Count: lateCount, Bytes: lateBytes}, h.now)
	h.processes = late.NewProcesses(MaxAge, h.now)
	h.metrics.registerOutbox(cfg.Registerer, h.out, h.memory)
	h.in = &inbox{
		gate: newGate(),
		from: cfg.From, clock: cfg.Clock, sink: h, epoch: h.epochNumber, beats: &h.beats, ended: h.endedAt, log: cfg.Logger,
		origins: map[node.ID]*origin{},
	}
	return h
}

// now is the time by which ages are told: its clock cannot be set, and counts time in which the host is suspended.
func (h *Hub) now() time.Time { return h.beats.now() }

// Open lets links be made. The hub's life ends with Close, not with ctx.
func (h *Hub) Open(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if h.in.since = h.in.taken; h.in.since.IsZero() || h.in.since.After(h.now()) {
		h.in.since = h.now()
	}
	c := &catchUp{h: h}
	run := h.ctx
	h.wg.Go(func() { c.runLoop(run) })
	return nil
}

// Close ends all links and waits for them.
func (h *Hub) Close() error {
	h.mu.Lock()
	if h.cancel != nil {
		h.cancel()
	}
	h.ctx = nil
	h.mu.Unlock()
	h.wg.Wait()
	return nil
}

// Handler takes the record streams of peers, at Path on the peer port. It may be called when the hub is open.
func (h *Hub) Handler() http.Handler { return h.in }

// SetPeers makes links to exactly these nodes.
func (h *Hub) SetPeers(peers []node.ID) {
	if want := h.linkTo(peers); want != nil {
		h.in.forgetExcept(want)
	}
}

// linkTo makes and ends links, and returns whom they are to; nil: the hub is closed.
func (h *Hub) linkTo(peers []node.ID) map[node.ID]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		return nil
	}
	want := make(map[node.ID]bool, len(peers))
	for _, id := range peers {
		if id == h.cfg.Self {
			continue
		}
		want[id] = true
		if h.links[id] == nil {
			h.startLink(id)
		}
	}
	for id, l := range h.links {
		if !want[id] {
			l.cancel()
			delete(h.links, id)
		}
	}
	return want
}

// startLink starts a link to id. The caller holds mu.
func (h *Hub) startLink(id node.ID) {
	ctx, cancel := context.WithCancel(h.ctx)
	kept := &linked{cancel: cancel, refused: new(refusals), beat: make(chan struct{}, 1)}
	h.links[id] = kept
	l := &link{
		peer: id, run: h.run, client: h.cfg.HTTP, out: h.out, clock: h.cfg.Clock, log: h.cfg.Logger, metrics: h.metrics,
		now: kept.beat, starts: h.processes.All, ways: h.cfg.Ways,
		beat:    func() beat { return beat{h.beats.stampAt(h.now()), h.in.stampOf(id)} },
		kept:    h.keptFromOthers,
		epoch:   h.epochRecord,
		dialled: func(err error) { kept.refused.noteResult(errors.Is(err, syscall.ECONNREFUSED), h.now()) },
	}
	h.wg.Go(func() { l.keepOpen(ctx) })
}

// beatNow sends a heartbeat to every peer.
func (h *Hub) beatNow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		signal.Send(l.beat)
	}
}

// endedAt is when the process that a peer had last is known to have ended, by the words of its host; the zero time if
// it is not known.
func (h *Hub) endedAt(id node.ID) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.links[id]; l != nil {
		return l.refused.refusedSince()
	}
	return time.Time{}
}

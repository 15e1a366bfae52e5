package fanout

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/signal"
)

// MaxAge is how old a publication may be when a peer or a minion gets it: a command is not run long after it was given.
// A minion needs up to 22 s to connect again (recon_default, recon_max, and what libzmq adds), when it knows that it
// has to.
const MaxAge = 60 * time.Second

const (
	outboxRecords = 16384
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

// Config is what a hub needs. Withhold, Away, Minority, NotLate, Registerer and Algorithm may be nil.
type Config struct {
	Self   node.ID
	Edge   Publisher
	Epochs Epochs
	Signer Signer
	// publish_signing_algorithm; empty when the master does not sign publications; nil: it never does
	Algorithm func() string
	Clock     *hlc.Clock
	HTTP      *http.Client                          // the peer port's client
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
	NotLate    func() bool
	SignedIn   func(id string, epoch uint64) // a peer answered a sign-in inside a rotation's window
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
	if cfg.Algorithm == nil {
		cfg.Algorithm = func() string { return "" }
	}
	h := &Hub{
		cfg:     cfg,
		run:     rand.Text(),
		out:     newOutbox(outboxRecords, outboxBytes, MaxAge, time.Now),
		metrics: newMetrics(cfg.Registerer),
		sealer:  sealer{epochs: cfg.Epochs, signer: cfg.Signer, algorithm: cfg.Algorithm, clock: cfg.Clock},
		links:   map[node.ID]*linked{},

		memory:      late.NewMemory(late.Limits{Age: MaxAge, Count: lateCount, Bytes: lateBytes}, time.Now),
		processes:   late.NewProcesses(MaxAge, time.Now),
		beats:       newBeats(),
		again:       make(chan struct{}, 1),
		overdueGrew: make(chan struct{}, 1),
	}
	h.metrics.registerOutbox(cfg.Registerer, h.out, h.memory)
	h.in = &inbox{
		gate: newGate(),
		from: cfg.From, clock: cfg.Clock, sink: h, epoch: h.epochNumber, beats: &h.beats, ended: h.endedAt, log: cfg.Logger,
		origins: map[node.ID]*origin{},
	}
	return h
}

// Open lets links be made. The hub's life ends with Close, not with ctx.
func (h *Hub) Open(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if h.in.since = h.in.taken; h.in.since.IsZero() {
		h.in.since = time.Now()
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
		now: kept.beat, starts: h.processes.All,
		beat:    func() beat { return beat{h.beats.stampAt(time.Now()), h.in.stampOf(id)} },
		theirs:  func() []late.Publication { return h.publishedBy(id) },
		dialled: func(err error) { kept.refused.noteResult(errors.Is(err, syscall.ECONNREFUSED), time.Now()) },
	}
	h.wg.Go(func() { l.keepOpen(ctx) })
}

// PeekLocal reads a publication of the local master, as Local wants it.
func (h *Hub) PeekLocal(plain []byte) (saltwire.PubPeek, error) {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		h.metrics.refused.WithLabelValues("malformed").Inc()
		return peek, fmt.Errorf("read local publication: %w", err)
	}
	return peek, nil
}

// Local takes a publication of the local master, with what was read of it, and hands it to this node's subscribers and
// to every peer.
func (h *Hub) Local(p Publication, peek saltwire.PubPeek) error {
	arrived := time.Now()
	if p.Topics == nil && peek.TgtType == "list" {
		p.Topics = listTopics(peek.Targets)
	}
	if peek.JID != "" {
		h.cfg.JobSeen(peek.JID, h.cfg.Self, p.Plain)
	}
	payload, err := appendPublication(nil, p)
	if err != nil {
		h.metrics.refused.WithLabelValues("too_long").Inc()
		return fmt.Errorf("local publication: %w", err)
	}
	h.rememberLate(peek.JID, h.cfg.Self, p, arrived)
	h.cfg.Hold() // before the epoch is read: a removed minion must not hear it at a peer either
	h.out.addRecord(kindPublication, h.cfg.Clock.Last(), payload, h.epochRecord())
	h.metrics.published.WithLabelValues("local").Inc()
	return h.deliverLocal(p, arrived)
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

// epochNumber is the number of the epoch in force, 0 before there is one.
func (h *Hub) epochNumber() uint64 {
	if cur, _ := h.cfg.Epochs.Sealing(); cur != nil {
		return cur.Number
	}
	return 0
}

// epochRecord says under which epoch at least the next publication is to be delivered.
func (h *Hub) epochRecord() []byte {
	if n := h.epochNumber(); n > 0 {
		return appendEpoch(nil, h.cfg.Clock.Last(), n)
	}
	return nil
}

// remotePublication implements sink.
func (h *Hub) remotePublication(origin node.ID, p Publication, at time.Time) {
	peek, err := saltwire.PeekPub(p.Plain)
	if err != nil {
		h.metrics.refused.WithLabelValues("malformed").Inc()
		h.cfg.Logger.Warn("publication of a peer refused", "node", origin, "err", err)
		return
	}
	if peek.JID != "" {
		h.cfg.JobSeen(peek.JID, origin, p.Plain)
	}
	h.metrics.published.WithLabelValues("peer").Inc()
	arrived := time.Now()
	// a minion may have had it elsewhere
	if h.rememberLate(peek.JID, origin, p, at) && arrived.Sub(at) > lateFrom && !h.hasOldPeers() {
		h.isOverdue(overdue{late.Publication{JID: peek.JID, Plain: p.Plain, Topics: p.Topics, At: at, Origin: string(origin)},
			arrived})
		return
	}
	h.cfg.Hold() // publications of one origin come one after the other, so their order stays
	if err := h.deliverLocal(p, arrived); err != nil {
		h.metrics.refused.WithLabelValues("seal").Inc()
		h.cfg.Logger.Error("publication of a peer not delivered", "node", origin, "jid", peek.JID, "err", err)
	}
}

// remoteSignIn implements sink.
func (h *Hub) remoteSignIn(id string, epoch uint64) { h.cfg.SignedIn(id, epoch) }

// remoteStart implements sink.
func (h *Hub) remoteStart(s late.Start) { h.processes.SignedIn(s) }

// ownPublication implements sink.
func (h *Hub) ownPublication(p Publication, at time.Time) {
	peek, err := saltwire.PeekPub(p.Plain)
	if err != nil {
		h.cfg.Logger.Warn("publication that a peer gave back refused", "err", err)
		return
	}
	h.rememberLate(peek.JID, h.cfg.Self, p, at)
}

// publishedBy lists what may be given late of a node's master.
func (h *Hub) publishedBy(id node.ID) []late.Publication {
	return slices.DeleteFunc(h.memory.Since(time.Now().Add(-MaxAge)),
		func(p late.Publication) bool { return p.Origin != string(id) })
}

// stoodStill implements sink.
func (h *Hub) stoodStill() { h.memory.Clear() }

// SignedIn notes that a process of a minion signs in here, before it is answered. token is what the process has shown.
// It must not be answered now if that cannot be told to the peers, who could give it a job that it was restarted by:
// false.
func (h *Hub) SignedIn(id string, token []byte) bool {
	now := time.Now()
	s := late.Start{ID: id, Process: late.ProcessOf(token), At: now}
	if len(id) > maxMinionID || h.processes.Known(id, s.Process) {
		return true
	}
	told := !h.cutOff(now) && h.out.addRecord(kindStart, h.cfg.Clock.Last(), appendStart(nil, s, now), nil)
	if !told && !h.cfg.NotLate() {
		return false
	}
	h.processes.SignedIn(s)
	return true
}

const (
	// cutAfter is how long most peers may be silent before this node takes itself for cut off.
	cutAfter = 2 * time.Second
	// cutFor is for how long it then lets no new processes in: longer than others give what is late (MaxAge) after they
	// heard it last.
	cutFor = MaxAge + 30*time.Second
)

// cutOff reports whether this node was cut off from most others a short while ago. One that was never in touch with
// them is not.
func (h *Hub) cutOff(now time.Time) bool {
	if !h.cfg.Minority() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var told []int64
	for id := range h.links {
		at := int64(0)
		if o := h.in.findOrigin(id); o != nil {
			at = o.told.Load()
		}
		told = append(told, at)
	}
	most := (len(told) + 1) / 2 // with this node they are a majority
	if most == 0 {
		return false
	}
	slices.Sort(told)
	last := told[len(told)-most]
	silent := time.Duration(h.beats.sinceStart(now) - last)
	return last > 0 && silent > cutAfter && silent < cutFor
}

// hasOldPeers reports whether a peer is of a version that does not tell what has started there. Late publications are
// then given at once.
func (h *Hub) hasOldPeers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.beats.sinceStart(time.Now())
	for id := range h.links {
		o := h.in.findOrigin(id)
		if o != nil && o.stamp.Load() == 0 && o.beatAt.Load() > 0 && time.Duration(now-o.beatAt.Load()) < silentAfter {
			return true
		}
	}
	return false
}

// isOverdue has o published as soon as that is safe.
func (h *Hub) isOverdue(o overdue) {
	h.overdueMu.Lock()
	if len(h.overdue) >= lateCount {
		h.overdue = slices.Delete(h.overdue, 0, 1)
		h.metrics.late.WithLabelValues("unknown").Inc()
	}
	h.overdue = append(h.overdue, o)
	h.overdueMu.Unlock()
	signal.Send(h.overdueGrew)
}

// startOver has all subscribers given what they may have missed.
func (h *Hub) startOver() { signal.Send(h.again) }

// rememberLate keeps a publication for minions that are between two connections; false: it is none that may be given
// late.
func (h *Hub) rememberLate(jid string, origin node.ID, p Publication, at time.Time) bool {
	if jid == "" || at.IsZero() || h.cfg.NotLate() {
		return false
	}
	h.memory.Add(late.Publication{JID: jid, Plain: p.Plain, Topics: p.Topics, At: at, Origin: string(origin)})
	return true
}

// AnnounceSignIn tells the peers that id was answered with epoch (epochs.Manager's announce).
func (h *Hub) AnnounceSignIn(id string, epoch uint64) {
	h.out.addRecord(kindSignIn, h.cfg.Clock.Last(), appendSignIn(nil, id, epoch), nil)
}

// deliverLocal seals p, which has come at arrived, and hands it to this node's 4505.
func (h *Hub) deliverLocal(p Publication, arrived time.Time) error {
	if h.cfg.Withhold() {
		h.metrics.refused.WithLabelValues("behind").Inc()
		return nil
	}
	h.sealMu.Lock()
	defer h.sealMu.Unlock()
	began := time.Now()
	cur, prev, err := h.sealer.sealStamped(p.Plain)
	if err != nil {
		return err
	}
	h.metrics.seal.Observe(time.Since(began).Seconds())
	h.cfg.Edge.Publish(edge.Publication{Body: cur, Prev: prev, Topics: p.Topics, TopicOnly: p.TopicOnly})
	h.metrics.deliver.Observe(time.Since(arrived).Seconds())
	return nil
}

// Nudge returns a publication for no minion, sealed under the current epoch: a minion that still holds the one before
// cannot open it and signs in again. It has no serial, which every version takes: it is sent to each minion at that
// one's turn, after publications that were stamped later.
func (h *Hub) Nudge() ([]byte, error) {
	return h.sealer.sealPlain(nudge)
}

// nudge is {"fun": "test.ping", "arg": [], "tgt": [], "jid": "0", "ret": "", "tgt_type": "list"}: complete enough for
// every minion version's target check, and an empty list matches no minion.
var nudge = []byte("\x86\xa3fun\xa9test.ping\xa3arg\x90\xa3tgt\x90\xa3jid\xa10\xa3ret\xa0\xa8tgt_type\xa4list")

// listTopics returns the topics of a list target for minions with zmq_filtering: the hex SHA-1 of each id
// (salt/transport/zeromq.py publish_payload).
func listTopics(ids []string) []string {
	topics := make([]string, 0, len(ids))
	for _, id := range ids {
		sum := sha1.Sum([]byte(id))
		topics = append(topics, hex.EncodeToString(sum[:]))
	}
	return topics
}

package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/router"
)

// ErrLogLost means that this node has forgotten what it voted for. It must not vote again.
var ErrLogLost = errors.New("the consensus log was removed")

// Config configures a Member.
type Config struct {
	Self      node.ID
	Options   *config.Config
	Record    *Record
	Identity  *peer.Identity // of this node
	Public    string         // clean text of the cluster's public key
	Advertise string         // address of the peer port for the others
	Join      peer.JoinHandler
	// Standing answers members that ask what this node's roster says of them.
	Standing func(node.ID, node.Fingerprint) peer.Standing
	// Handler answers what members ask of each other.
	Handler http.Handler
	Sockets Sockets
	// Meta is what this node tells the others about itself, and Stats what another node tells when it is asked.
	Meta  func() node.Meta
	Stats func(context.Context, node.ID) (consensus.PeerStats, error)
	// Lead does what only the leader does, until its context ends.
	Lead func(context.Context)
	// Now is the time of the cluster (consensus.Config).
	Now func() time.Time
	// NoQuorum makes the error that operators get when no majority can decide.
	NoQuorum func(error) error
	// CaughtUpChanged is called when Consensus.CaughtUp has changed.
	CaughtUpChanged func()
	// Complete adds to a view what the service for minions knows. RoutesChanged is called when other requests can be
	// sent than before.
	Complete      func(*router.View)
	RoutesChanged func()
	Logger        *slog.Logger
	Registerer    prometheus.Registerer
}

// Sockets opens the sockets of the peer port.
type Sockets interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// Member is this node's running membership: peer port, consensus and gossip, and what follows from them.
type Member struct {
	Roster    *peer.Book
	Port      *peer.Port
	Consensus *consensus.Node
	Gossip    *gossip.Gossip
	Record    *Record // as it was at the start
	Since     time.Time

	cfg    Config
	log    *slog.Logger
	stored *Record  // as it is on disk; Follow's
	keys   [][]byte // the gossip keys in force; Follow's
	ended  atomic.Bool
	failed chan error // why a part ended on its own

	view    atomic.Pointer[router.View]
	viewing sync.Mutex    // held while the view is made anew
	reroute chan struct{} // has a token when it is to be made anew at once

	open []interface{ Close() error }
}

// New puts the parts together; nothing runs before Open.
func New(cfg Config) (*Member, error) {
	stateDir := cfg.Options.Paths.StateDir
	roster, err := peer.OpenBook(RosterPath(stateDir))
	if err != nil {
		return nil, WithRecoveryHint(err)
	}
	m := &Member{
		Roster: roster, Record: cfg.Record, Since: time.Now(), cfg: cfg, log: cfg.Logger, stored: cfg.Record,
		keys: cfg.Record.GossipKeys, failed: make(chan error, 1), reroute: make(chan struct{}, 1),
	}
	m.Port, err = peer.NewPort(peer.Config{
		Listen: cfg.Options.PeerListen(), Advertise: cfg.Advertise, Identity: cfg.Identity,
		Roster: m.Roster, Standing: cfg.Standing, Handler: cfg.Handler, Join: cfg.Join, ListenWith: cfg.Sockets.Listen,
		Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	m.Consensus, err = consensus.New(consensus.Config{
		ID: cfg.Self, Dir: RaftDir(stateDir), Port: m.Port, Remote: peer.Remote,
		Forward: m.forward, Stats: cfg.Stats, Alive: m.Alive, Tolerance: m.tolerance,
		Lead: cfg.Lead, Standing: cfg.CaughtUpChanged, Now: cfg.Now,
		MaxVoters: cfg.Options.Cluster.MaxVoters, VoterTimeout: cfg.Options.Cluster.VoterTimeout,
		Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	m.Gossip, err = gossip.New(gossip.Config{
		ID: cfg.Self, Port: m.Port, Roster: m.Roster, Keys: cfg.Record.GossipKeys, Label: cfg.Record.UUID, Meta: cfg.Meta,
		ListenPacket: cfg.Sockets.ListenPacket, Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	m.view.Store(&router.View{Self: cfg.Self})
	return m, nil
}

// Open opens peer port, consensus and gossip. ErrLogLost and consensus.ErrDamaged mean that this node is not a member
// any more.
func (m *Member) Open(ctx context.Context) error {
	if err := m.OpenPort(ctx); err != nil {
		return err
	}
	return m.OpenConsensus(ctx)
}

// Bind takes the addresses of the peer port and of gossip, so that opening them cannot find them taken.
func (m *Member) Bind(ctx context.Context) error {
	if err := m.Port.Bind(ctx); err != nil {
		return err
	}
	return m.Gossip.Bind(ctx)
}

// OpenPort opens the peer port.
func (m *Member) OpenPort(ctx context.Context) error {
	if err := m.Port.Open(ctx); err != nil {
		return err
	}
	m.open = append(m.open, m.Port)
	return nil
}

// OpenConsensus opens consensus and gossip, after the peer port.
func (m *Member) OpenConsensus(ctx context.Context) error {
	if err := m.Consensus.Open(ctx); err != nil {
		return err
	}
	m.open = append(m.open, m.Consensus)
	if m.Record.Born && !m.Consensus.HasState() {
		return ErrLogLost
	}
	if err := m.Gossip.Open(ctx, nil); err != nil { // it finds the others on the roster
		return err
	}
	m.open = append(m.open, m.Gossip)
	if m.Record.Founder {
		return m.found(ctx)
	}
	return nil
}

// Close closes what is open, backwards.
func (m *Member) Close() error {
	var err error
	for i := len(m.open) - 1; i >= 0; i-- {
		err = errors.Join(err, m.open[i].Close())
	}
	return err
}

// Serve calls open, which opens what serves minions, and returns when ctx ends, or why a part has ended before.
func (m *Member) Serve(ctx context.Context, open func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		defer cancel() // ends the opening as well
		ended <- m.awaitEnd(ctx)
	}()
	if err := open(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return <-ended
}

// awaitEnd returns when ctx ends, or why a part has ended before.
func (m *Member) awaitEnd(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-m.failed:
		return err
	case <-m.Consensus.Done():
		return fmt.Errorf("consensus ended: %w", m.Consensus.Err())
	case <-m.Port.Done():
		return errors.New("the peer port ended")
	}
}

// Fail ends Serve with the failure of a part. The first one counts.
func (m *Member) Fail(err error) {
	select {
	case m.failed <- err:
	default:
	}
}

// Failed says whether a part has failed and Serve has not returned that yet.
func (m *Member) Failed() bool { return len(m.failed) > 0 }

// Leave stops Follow from writing the record: this node is not a member any more.
func (m *Member) Leave() { m.ended.Store(true) }

// Audit says who proposes a change, when and why.
func (m *Member) Audit(cause string) state.Audit {
	return state.Audit{By: m.cfg.Self, At: m.Consensus.Now().UnixMilli(), Cause: cause}
}

// Alive says whether a node is this one, or gossip sees it.
func (m *Member) Alive(id node.ID) bool { return id == m.cfg.Self || m.Gossip.Alive(id) }

// tolerance is how long a node waits for a heartbeat of the leader of consensus, as it says itself.
func (m *Member) tolerance(id node.ID) time.Duration {
	if g, ok := m.Gossip.Member(id); ok && g.Meta.Tolerance > 0 {
		return time.Duration(g.Meta.Tolerance) * time.Millisecond
	}
	return consensus.DefaultTolerance
}

// AwaitRevision waits until this node's view is at rev or later.
func (m *Member) AwaitRevision(ctx context.Context, rev uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for changed := m.Consensus.Watch(ctx); m.Consensus.View().Rev() < rev; {
		if _, ok := <-changed; !ok {
			return fmt.Errorf("wait for revision %d: %w", rev, context.Cause(ctx))
		}
	}
	return nil
}

// Client calls other members.
func (m *Member) Client() peerrpc.Client { return peerrpc.Client{HTTP: m.Port.HTTPClient()} }

// Call sends bytes to a member, for engines that encode them themselves.
func (m *Member) Call(
	ctx context.Context, method string, to node.ID, path string, body []byte, limit int64,
) ([]byte, error) {
	return m.Client().Do(ctx, method, to, path, body, limit)
}

// Others lists the members but this node.
func (m *Member) Others() (others []node.ID) {
	for _, mem := range m.Consensus.View().Members() {
		if mem.ID != m.cfg.Self {
			others = append(others, mem.ID)
		}
	}
	return others
}

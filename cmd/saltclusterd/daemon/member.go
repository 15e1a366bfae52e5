package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
)

// member is this node's running membership: peer port, consensus, gossip, and the service for minions on top.
type member struct {
	d           *Daemon
	log         *slog.Logger
	seed        *membership.Record // as it was at the start
	stored      *membership.Record // as it is on disk; the follower's
	keys        [][]byte           // the gossip keys in force; the follower's
	key         *saltcrypt.MasterKey
	public      string // clean text of the cluster's public key
	fingerprint string // its fingerprint

	secrets      *rotation.Secrets
	certificates *rotation.Certificates
	identity     *identity.Change
	admission    *joining.Admission

	roster  *peer.Book
	port    *peer.Port
	cons    *consensus.Node
	gossip  *gossip.Gossip
	svc     *service
	minions *minionview.View
	reports *operator.Cluster
	rpc     *rpcSwitch
	view    atomic.Pointer[router.View]
	viewing sync.Mutex    // held while the view is made anew
	reroute chan struct{} // somebody wants that
	haste   atomic.Bool   // closing must not wait for minions

	leadership *leadership.Control
	drains     *drain.Cluster
	remover    *removal.Remover
	standing   *removal.Watch
	former     *recovery.Former

	clocks *clocks.Watch

	open   []closer
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // a part that ended by itself
	since  time.Time  // it was made
	took   time.Time  // when it took over from another process; zero: it did not
}

// newMember puts the parts together; nothing runs before Open.
func (d *Daemon) newMember(seed *membership.Record) (*member, error) {
	roster, err := peer.OpenBook(membership.RosterPath(d.cfg.Paths.StateDir))
	if err != nil {
		return nil, membership.WithRecoveryHint(err)
	}
	m := &member{
		d: d, log: d.log, seed: seed, stored: seed, keys: seed.GossipKeys, roster: roster, since: time.Now(),
		failed: make(chan error, 1), reroute: make(chan struct{}, 1),
	}
	join, err := m.readKeys()
	if err != nil {
		return nil, membership.WithRecoveryHint(err)
	}
	m.fingerprint = saltcrypt.Fingerprint(m.public)
	m.rpc = newRPCSwitch()
	m.port, err = peer.NewPort(peer.Config{
		Listen: d.cfg.PeerListen(), Advertise: d.cfg.PeerAdvertise(localAddrs()), Identity: d.identity,
		Roster: m.roster, Handler: m.rpc, Join: join, ListenWith: d.sockets.Listen,
		Standing: func(id node.ID, fp node.Fingerprint) peer.Standing { return m.standing.Answer(id, fp) },
		Logger:   d.log, Registerer: d.reg,
	})
	if err != nil {
		return nil, err
	}
	m.cons, err = consensus.New(consensus.Config{
		ID: d.id, Dir: membership.RaftDir(d.cfg.Paths.StateDir), Port: m.port, Remote: peer.Remote,
		Forward: m.forward, Stats: m.stats, Alive: m.alive, Lead: m.lead,
		Standing:  func() { d.checks.Kick("consensus", "behind") },
		MaxVoters: d.cfg.Cluster.MaxVoters, VoterTimeout: d.cfg.Cluster.VoterTimeout, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return nil, err
	}
	m.gossip, err = gossip.New(gossip.Config{
		ID: d.id, Port: m.port, Roster: m.roster, Keys: seed.GossipKeys, Label: seed.UUID, Meta: m.meta,
		ListenPacket: d.sockets.ListenPacket, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return nil, err
	}
	m.buildRotation()
	m.buildIdentity()
	m.view.Store(&router.View{Self: d.id})
	m.clocks = m.newClocks()
	m.leadership, m.drains = m.newLeadership(), m.newDrains()
	m.standing, m.former = m.newStanding(), m.newFormer()
	m.remover = m.newRemover()
	if !seed.Witness {
		if m.svc, err = newService(m); err != nil {
			return m, err
		}
	}
	m.minions = m.newMinionView()
	m.reports = m.newReports()
	return m, nil
}

// readKeys reads the cluster's identity. Who has it can let others in, so a witness cannot.
func (m *member) readKeys() (peer.JoinHandler, error) {
	if m.seed.Witness {
		var err error
		m.public, err = membership.ReadPublicIdentity(m.d.cfg.Cluster.PKIDir)
		m.admission = m.newAdmission()
		return nil, err
	}
	key, private, public, err := membership.ReadIdentity(m.d.cfg.Cluster.PKIDir)
	if err != nil {
		return nil, err
	}
	m.key, m.public = key, key.PublicText()
	if changed, err := m.d.masterKeys().Store(private); err != nil {
		m.log.Error("the master's key store has not the cluster's identity", "err", err)
	} else if changed {
		m.log.Warn("the cluster's identity was put into the master's key store: restart the salt-master if it runs already")
	}
	m.admission = m.newAdmission()
	return m.admission.Handler(private, public)
}

// Open opens peer port, consensus and gossip.
func (m *member) Open(ctx context.Context) error {
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.rpc.handle(m)
	if err := m.port.Open(ctx); err != nil {
		return err
	}
	m.open = append(m.open, m.port)
	if err := m.cons.Open(ctx); errors.Is(err, consensus.ErrDamaged) {
		m.log.Error("consensus not opened", "err", err)
		return m.d.lostLog(consensus.ErrDamaged.Error())
	} else if err != nil {
		return err
	}
	m.open = append(m.open, m.cons)
	if m.seed.Born && !m.cons.HasState() {
		return m.d.lostLog("the consensus log is gone")
	}
	if err := m.gossip.Open(ctx, nil); err != nil { // it finds the others on the roster by itself
		return err
	}
	m.open = append(m.open, m.gossip)
	if m.seed.Founder {
		if err := m.found(ctx); err != nil {
			return err
		}
	}
	startDuties(m.ctx, &m.wg, m.duties(), consensusOpen, false)
	return nil
}

// found gives birth to the cluster's consensus, unless a run before this one did.
func (m *member) found(ctx context.Context) error {
	epoch, err := saltcrypt.NewKey()
	if err != nil {
		return err
	}
	self, ok := m.roster.Lookup(m.d.id)
	if !ok {
		return membership.WithRecoveryHint(fmt.Errorf("%s does not know this node", membership.RosterPath(m.d.cfg.Paths.StateDir)))
	}
	err = m.cons.Bootstrap(ctx, state.Init{
		Identity:    state.Identity{ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, IdentityFP: saltcrypt.Fingerprint(m.public)},
		Founder:     state.Member{ID: self.ID, Addr: self.Addr.String(), Fingerprint: string(self.Fingerprint), Weight: membership.DefaultWeight},
		EpochKey:    state.SecretText(epoch.Text()),
		SessionSeed: state.NewSecret(randomBytes(sessionSeedSize)),
		GossipKey:   state.NewSecret(m.seed.GossipKeys[0]),
		Audit:       m.audit("bootstrap"),
	})
	if err != nil && !errors.Is(err, consensus.ErrBootstrapped) {
		return err
	}
	return nil
}

const sessionSeedSize = 32

// Serve opens the service when this node has caught up, and returns when ctx ends or a part has failed.
func (m *member) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		defer cancel() // opening must not go on either
		ended <- m.watch(ctx)
	}()
	if m.svc != nil {
		if err := m.svc.Open(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return <-ended
}

// watch returns when ctx ends, or why a part has ended before.
func (m *member) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-m.failed:
		return err
	case <-m.cons.Done():
		return fmt.Errorf("consensus ended: %w", m.cons.Err())
	case <-m.port.Done():
		return errors.New("the peer port ended")
	}
}

// Close closes the service, then what it stands on.
func (m *member) Close() error {
	var err error
	if m.svc != nil {
		err = m.svc.Close()
	} else {
		m.leadership.Resign(m.patience())
	}
	if m.cancel != nil {
		m.cancel()
	}
	m.wg.Wait()
	for i := len(m.open) - 1; i >= 0; i-- {
		err = errors.Join(err, m.open[i].Close())
	}
	return err
}

// patience ends when closing shall wait for nothing any more.
func (m *member) patience() context.Context {
	if !m.haste.Load() {
		return m.d.patience
	}
	ctx, cancel := context.WithCancel(m.d.patience)
	cancel()
	return ctx
}

// fail ends Serve with the failure of a part.
func (m *member) fail(err error) {
	select {
	case m.failed <- err:
	default: // one reason is enough
	}
}

// audit says who proposes a change, when and why.
func (m *member) audit(cause string) state.Audit {
	return state.Audit{By: m.d.id, At: time.Now().UnixMilli(), Cause: cause}
}

// awaitRev waits until this node's view is at rev or later.
func (m *member) awaitRev(ctx context.Context, rev uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for changed := m.cons.Watch(ctx); m.cons.View().Rev() < rev; {
		if _, ok := <-changed; !ok {
			return fmt.Errorf("wait for revision %d: %w", rev, context.Cause(ctx))
		}
	}
	return nil
}

// ready says whether this node serves minions.
func (m *member) ready() bool { return m.svc != nil && m.svc.opened.Load() }

// alive says whether gossip thinks that a node is there.
func (m *member) alive(id node.ID) bool { return id == m.d.id || m.gossip.Alive(id) }

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/consensus"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
)

// member is this node's running membership: peer port, consensus, gossip, and the service for minions on top.
type member struct {
	*membership.Member
	lifetime
	d   *Daemon
	log *slog.Logger
	clusterKey

	secrets      *rotation.Secrets
	certificates *rotation.Certificates
	identity     *identity.Change
	admission    *joining.Admission

	role    role
	minions *minionview.View
	reports *operator.Cluster
	rpc     *peerrpc.Switch

	leadership *leadership.Control
	drains     *drain.Cluster
	remover    *removal.Remover
	standing   *removal.Watch
	former     *recovery.Former

	clocks *clocks.Watch
}

// clusterKey is the identity of the cluster.
type clusterKey struct {
	key         *saltcrypt.MasterKey // nil on a witness
	public      string               // clean text of the public key
	fingerprint string               // of the public key
}

// newMember puts the parts together; nothing runs before Open.
func (d *Daemon) newMember(record *membership.Record) (*member, error) {
	m := &member{d: d, log: d.log, rpc: new(peerrpc.Switch), lifetime: lifetime{failed: make(chan error, 1)}}
	m.role = witness{m}
	join, err := m.readKeys(record)
	if err != nil {
		return nil, membership.WithRecoveryHint(err)
	}
	m.fingerprint = saltcrypt.Fingerprint(m.public)
	m.Member, err = membership.New(membership.Config{
		Self: d.id, Options: d.cfg, Record: record, Identity: d.identity, Public: m.public,
		Advertise: d.cfg.PeerAdvertise(membership.LocalAddrs()), Join: join,
		Standing: func(id node.ID, fp node.Fingerprint) peer.Standing { return m.standing.Answer(id, fp) },
		Handler:  m.rpc, Listen: d.sockets.Listen, ListenPacket: d.sockets.ListenPacket,
		Meta: func() node.Meta { return m.role.meta() }, Stats: m.stats, Lead: m.lead,
		NoQuorum:        func(err error) error { return m.remover.NoQuorum(err) },
		CaughtUpChanged: func() { d.checks.Kick("consensus", "behind") },
		Complete:        func(v *router.View) { m.role.completeRoutes(v) },
		RoutesChanged:   func() { m.role.routesChanged() }, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return nil, err
	}
	m.buildCapabilities()
	if !record.Witness {
		s, err := newService(m)
		if err != nil {
			return nil, err
		}
		m.role = s
	}
	m.minions = m.newMinionView()
	m.reports = m.newReports()
	return m, nil
}

// readKeys reads the cluster's identity. A node that has it can admit others, so a witness cannot.
func (m *member) readKeys(record *membership.Record) (peer.JoinHandler, error) {
	if record.Witness {
		var err error
		m.public, err = membership.ReadPublicIdentity(m.d.cfg.Cluster.PKIDir)
		m.admission = m.newAdmission(record)
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
	m.admission = m.newAdmission(record)
	return m.admission.Handler(private, public)
}

// Open opens peer port, consensus and gossip.
func (m *member) Open(ctx context.Context) error {
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.handle()
	switch err := m.Member.Open(ctx); {
	case errors.Is(err, consensus.ErrDamaged):
		m.log.Error("consensus not opened", "err", err)
		return m.d.lostLog(consensus.ErrDamaged.Error())
	case errors.Is(err, membership.ErrLogLost):
		return m.d.lostLog(membership.ErrLogLost.Error())
	case err != nil:
		return err
	}
	m.duties().Start(m.ctx, &m.wg, lifecycle.ConsensusOpen, lifecycle.ColdStart)
	return nil
}

// Serve opens what serves minions, and returns when ctx ends or a part has failed.
func (m *member) Serve(ctx context.Context, open func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		defer cancel() // ends the opening as well
		ended <- m.watch(ctx)
	}()
	if err := open(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return <-ended
}

// watch returns when ctx ends, or why a part has ended before.
func (m *member) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Watch(ctx) }() // ends with ctx
	select {
	case err := <-m.failed:
		return err
	case err := <-ended:
		return err
	}
}

// Close closes the service, then what it stands on.
func (m *member) Close() error {
	err := m.role.Close()
	if m.cancel != nil {
		m.cancel()
	}
	m.wg.Wait()
	return errors.Join(err, m.Member.Close())
}

// followRoutes is a duty of the member.
func (m *member) followRoutes(ctx context.Context) {
	if !m.took.IsZero() {
		m.AwaitPeers(ctx)
	}
	m.FollowRoutes(ctx)
}

// keepContact is a duty of the member.
func (m *member) keepContact(ctx context.Context) { m.d.contact.Keep(ctx, m.Consensus.CaughtUp) }

// service is what only a member with a salt-master is asked for.
func (m *member) service() *service {
	s, _ := m.role.(*service)
	return s
}

// lifetime is what a member needs while it is open.
type lifetime struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error  // why a part ended on its own
	haste  atomic.Bool // closing must not wait for minions
	took   time.Time   // when it took over from another process; zero: it did not
}

// fail ends Serve with the failure of a part.
func (l *lifetime) fail(err error) {
	select {
	case l.failed <- err:
	default: // one reason is enough
	}
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

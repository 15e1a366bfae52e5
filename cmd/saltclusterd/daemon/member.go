package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/cmd/saltclusterd/rsabackend"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
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
	reports *operator.Cluster
	rpc     *peerrpc.Switch

	leadership *leadership.Control
	drains     *drain.Cluster
	remover    *removal.Remover
	standing   *removal.Watch
	former     *recovery.Former
	clocks     *clocks.Watch
}

// clusterKey is the identity of the cluster.
type clusterKey struct {
	key         *saltcrypt.MasterKey // nil on a witness
	public      string               // clean text of the public key
	fingerprint string               // of the public key
}

// newMember puts the parts together; nothing runs before Open.
func (d *Daemon) newMember(record *membership.Record) (*member, error) {
	m := &member{d: d, log: d.log, rpc: new(peerrpc.Switch)}
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
		Handler:  m.rpc, Sockets: d.sockets,
		Meta: func() node.Meta { return m.role.meta() }, Lead: m.lead,
		Stats: func(ctx context.Context, id node.ID) (consensus.PeerStats, error) {
			s, err := m.reports.Ask(ctx, id)
			return s.PeerStats, err
		},
		Now:             func() time.Time { return m.clocks.Reference().Guess() },
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
		m.log.Error("the master's key store lacks the cluster's identity", "err", err)
	} else if changed {
		m.log.Warn("the cluster's identity was put into the master's key store: restart the salt-master if it is running")
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

// Close closes the service, then what it stands on.
func (m *member) Close() error {
	err := m.role.Close()
	if m.cancel != nil {
		m.cancel()
	}
	m.wg.Wait()
	return errors.Join(err, m.Member.Close())
}

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
	haste  atomic.Bool // closing must not wait for minions
	took   time.Time   // when it took over from another process; zero: it did not
}

// gracefulContext ends when closing shall wait for nothing any more.
func (m *member) gracefulContext() context.Context {
	if !m.haste.Load() {
		return m.d.graceful
	}
	ctx, cancel := context.WithCancel(m.d.graceful)
	cancel()
	return ctx
}

// buildCapabilities makes what every member has, with and without a salt-master.
func (m *member) buildCapabilities() {
	m.buildRotation()
	m.identity = m.newIdentity()
	m.clocks = m.newClocks()
	m.leadership = leadership.New(leadership.Config{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus,
		Voters: m.Voters, Alive: m.Alive, Leaving: m.IsDraining, Routes: m.Routes,
		Client: m.Client(), NoQuorum: m.NoQuorum, Logger: m.log,
	})
	m.drains = drain.NewCluster(drain.ClusterConfig{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus,
		Own:    func() *drain.Runner { return m.service().drain },
		Voters: m.Voters, Alive: m.Alive, Routes: m.Routes, Client: m.Client(), Audit: m.Audit,
		Find: m.FindMaster, Undecided: membership.Undecided, NoQuorum: m.NoQuorum,
		DrainTime: m.d.cfg.Edge.DrainAnnounce + m.d.cfg.Edge.DrainTime,
	})
	m.standing = removal.NewWatch(removal.WatchConfig{
		Self: m.d.id, Log: m.Consensus, Roster: m.Roster, Generation: m.Record.Generation, Alive: m.Alive,
		Ask: m.Port.AskStanding,
		End: func(reason string) {
			m.Leave()
			m.Fail(m.d.endForGood(reason))
		},
		Logger: m.log,
	})
	m.former = recovery.NewFormer(recovery.FormerConfig{
		ClusterID: m.Record.ClusterID, StateDir: m.d.cfg.Paths.StateDir, View: m.Consensus.View, Ask: m.Port.AskFormer,
		Interval: m.d.formerEvery, Logger: m.log,
	})
	m.remover = removal.New(removal.Config{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus, Alive: m.Alive,
		Drains: m.drains, Transfer: m.leadership.Transfer, Audit: m.Audit, Left: m.standing.Left,
		Running: func() bool { return m.d.tenure.Current() == m }, TakesSecret: m.admission.TakesSecret, Logger: m.log,
	})
}

// newAdmission builds what admits other nodes. Its functions are called when the membership has been made.
func (m *member) newAdmission(record *membership.Record) *joining.Admission {
	return joining.NewAdmission(joining.AdmissionConfig{
		Self: m.d.id, ClusterID: record.ClusterID, Secret: m.d.cfg.Cluster.Secret, Public: m.public,
		Log: func() joining.Log { return m.Consensus }, Alive: func(id node.ID) bool { return m.Alive(id) },
		Supported:  func(level uint16) error { return m.Knows(level) },
		SigningKey: func() ([]byte, error) { return m.d.masterKeys().SigningKey() },
		Decide:     func(ctx context.Context, c state.Command) (state.Result, error) { return m.Decide(ctx, c) },
		Audit:      func(cause string) state.Audit { return m.Audit(cause) },
		AwaitRoots: func(ctx context.Context) error { return m.role.awaitRoots(ctx) }, Logger: m.log,
	})
}

// buildRotation makes the parts that replace secrets of the cluster.
func (m *member) buildRotation() {
	cfg := m.d.cfg
	of := rotation.Membership{
		Self: m.d.id, Log: m.Consensus, Alive: m.Alive, Decide: m.Decide, Undecided: membership.Undecided,
		NoQuorum: m.NoQuorum, Knows: m.Knows, Logger: m.log,
	}
	m.secrets = rotation.NewSecrets(rotation.SecretsConfig{
		Membership: of, RotateInterval: cfg.Edge.RotateInterval, RotateWindow: cfg.Edge.RotateWindow, Now: m.Consensus.Now,
		Revisions: func(ctx context.Context, roster []state.Member) map[node.ID]uint64 {
			return m.reports.Revisions(ctx, roster)
		},
		Moving: func() bool { return m.role.movesSubscribers() },
	})
	m.certificates = rotation.NewCertificates(rotation.CertificatesConfig{
		Membership: of, Identity: m.d.identity, StateDir: cfg.Paths.StateDir, MaxAge: cfg.Cluster.CertificateAge,
		Roster: m.Roster, Client: m.Client(), Claim: m.d.op.Claim, NotMember: m.d.errNoMember,
		Registerer: m.d.reg,
	})
}

// newIdentity makes what changes the cluster's identity on this node.
func (m *member) newIdentity() *identity.Change {
	d := m.d
	return identity.New(identity.Config{
		Self: d.id, Log: m.Consensus, Key: m.key, Fingerprint: m.fingerprint, MasterKeys: d.masterKeys(),
		PinsFile: filepath.Join(d.cfg.Paths.StateDir, "pins.json"), PKIDir: d.cfg.Cluster.PKIDir,
		Alive: m.Alive, Decide: m.Decide, NoQuorum: m.NoQuorum, Knows: m.Knows,
		ReplaceAES: func(ctx context.Context) error {
			_, err := m.secrets.ReplaceAES(ctx)
			return err
		},
		Takeover: d.renew, Client: m.Client(), Logger: m.log,
		Status: func(ctx context.Context, id node.ID) (identity.Status, error) {
			ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
			defer cancel()
			s, err := m.reports.Ask(ctx, id)
			return identity.Status{Fingerprint: s.Identity, Shown: s.IdentityShown}, err
		},
		Accelerate: func(key *saltcrypt.MasterKey) signin.SecondIdentity {
			accelerated, _ := rsabackend.Accelerate(d.cfg.SignIn.RSABackend, key)
			return accelerated
		},
	})
}

// newClocks returns what compares this host's clock with those of the other members.
func (m *member) newClocks() *clocks.Watch {
	return clocks.NewWatch(clocks.Config{
		Self: m.d.id, Log: m.Consensus, Wall: m.d.wall, Interval: m.d.clockInterval, Logger: m.log,
		Read: func(ctx context.Context, id node.ID) (clocks.Reading, error) {
			s, err := m.reports.Ask(ctx, id)
			return clocks.Reading{Wall: s.Now, Serial: s.Serial}, err
		},
		Observe: func(serial hlc.Timestamp) error { return m.role.observe(serial) }, Registerer: m.d.reg,
	})
}

// connections are those of minions to all nodes.
func (m *member) connections() minionview.Connections {
	return minionview.Connections{
		Self: m.d.id, Others: m.OtherMasters, Client: m.Client(),
		Subscribers: func() []edge.Subscriber { return m.role.subscribers() }, // the role is made after its parts
	}
}

// newReports returns the membership as operators see it.
func (m *member) newReports() *operator.Cluster {
	cfg := operator.ClusterConfig{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Fingerprint: m.fingerprint,
		Log: m.Consensus, Gossip: m.Gossip, Client: m.Client(), Meta: m.role.meta, Stats: m.localStats,
		Sync: m.role.syncProgress, ClockFresh: m.clocks.IsFresh, Problems: m.problems, Usable: m.UsableRing,
	}
	m.role.addReports(&cfg)
	return operator.NewCluster(cfg)
}

// localStats is what this node reports.
func (m *member) localStats() operator.Stats {
	s := operator.Stats{
		PeerStats: m.Consensus.LocalStats(), Sync: m.role.syncProgress(), Now: m.d.wall().UTC(), Identity: m.fingerprint,
		Reasons: operator.Reasons(m.d.checks.Report(health.ScopeReady)),
	}
	s.Syncing = len(s.Sync) > 0
	m.role.addStats(&s)
	return s
}

// problems lists what is wrong with the cluster as a whole.
func (m *member) problems(stats map[node.ID]operator.Stats) []adminapi.Problem {
	masters := make(map[string]localmaster.Own, len(stats))
	for id, s := range stats {
		masters[string(id)] = s.Own
	}
	return slices.Concat(m.clocks.Problems(), m.admission.SecretProblems(), m.identity.Problems(), m.former.Problems(),
		masterlink.OwnProblems(masters), m.role.problems())
}

// outcome describes this node as the result of an operation, without a message.
func (m *member) outcome() adminapi.Outcome {
	out := adminapi.Outcome{
		Node: string(m.d.id), ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Role: adminapi.RoleLearner,
		Ready: m.role.ready(),
	}
	if m.IsVoter() {
		out.Role = adminapi.RoleVoter
	}
	return out
}

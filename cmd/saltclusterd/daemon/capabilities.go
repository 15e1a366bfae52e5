package daemon

import (
	"context"
	"path/filepath"
	"slices"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
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
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

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
			m.fail(m.d.endForGood(reason))
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
		Running: func() bool { return m.d.current() == m }, Logger: m.log,
	})
}

// newAdmission builds what admits other nodes. Its functions are called when the membership has been made.
func (m *member) newAdmission(record *membership.Record) *joining.Admission {
	return joining.NewAdmission(joining.AdmissionConfig{
		Self: m.d.id, ClusterID: record.ClusterID, Secret: m.d.cfg.Cluster.Secret, Public: m.public,
		Log:   func() joining.Log { return m.Consensus },
		Alive: func(id node.ID) bool { return m.Alive(id) }, Supported: func(level uint16) error { return m.Knows(level) },
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
		Membership: of, RotateInterval: cfg.Edge.RotateInterval, RotateWindow: cfg.Edge.RotateWindow,
		Revisions: m.revisions, Moving: func() bool { return m.role.movesSubscribers() },
	})
	m.certificates = rotation.NewCertificates(rotation.CertificatesConfig{
		Membership: of, Identity: m.d.identity, StateDir: cfg.Paths.StateDir, MaxAge: cfg.Cluster.CertificateAge,
		Roster: m.Roster, Client: m.Client(), Claim: m.d.op.Claim, NotMember: m.d.errNoMember,
		Registerer: m.d.reg,
	})
}

// revisions asks members for the revision that each has applied.
func (m *member) revisions(ctx context.Context, roster []state.Member) map[node.ID]uint64 {
	out := map[node.ID]uint64{}
	for id, s := range m.reports.AskAll(ctx, roster) {
		out[id] = s.Rev
	}
	return out
}

// newIdentity makes what changes the cluster's identity on this node.
func (m *member) newIdentity() *identity.Change {
	d := m.d
	cfg := identity.Config{
		Self: d.id, Log: m.Consensus, Key: m.key, Fingerprint: m.fingerprint, MasterKeys: d.masterKeys(),
		PinsFile: filepath.Join(d.cfg.Paths.StateDir, "pins.json"), PKIDir: d.cfg.Cluster.PKIDir,
		Alive: m.Alive, Decide: m.Decide, NoQuorum: m.NoQuorum, Knows: m.Knows,
		ReplaceAES: func(ctx context.Context) error {
			_, err := m.secrets.ReplaceAES(ctx)
			return err
		},
		Takeover: d.renew, Status: m.identityStatus, Client: m.Client(), Logger: m.log,
		Accelerate: func(key *saltcrypt.MasterKey) signin.SecondIdentity {
			accelerated, _ := rsabackend.Accelerate(d.cfg.SignIn.RSABackend, key)
			return accelerated
		},
	}
	if !m.Record.Witness {
		cfg.Master = identityMaster{m}
	}
	return identity.New(cfg)
}

// identityStatus asks a node which identity it has.
func (m *member) identityStatus(ctx context.Context, id node.ID) (identity.Status, error) {
	if id == m.d.id {
		s := m.localStats()
		return identity.Status{Fingerprint: s.Identity, Shown: s.IdentityShown}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	s, err := m.reports.Ask(ctx, id)
	return identity.Status{Fingerprint: s.Identity, Shown: s.IdentityShown}, err
}

// identityMaster implements identity.Master for a member with a service.
type identityMaster struct{ m *member }

// Options implements identity.Master: the configuration as the master has read it, that of saltclusterd's start until
// another one was read.
func (i identityMaster) Options() *localmaster.Config {
	return i.m.service().master.Followed.Load().From
}

// PubSigner implements identity.Master.
func (i identityMaster) PubSigner(options *localmaster.Config, public string) (signin.PubSigner, error) {
	return masterlink.ReadPubSigner(i.m.d.masterKeys().ReadFile, options, public)
}

// Answer implements identity.Master.
func (i identityMaster) Answer(another *signin.Another) { i.m.service().signin.Answer(another) }

// SignIn implements identity.Master.
func (i identityMaster) SignIn(ctx context.Context) error {
	return i.m.service().master.Intake.Learn(ctx)
}

// Restart implements identity.Master.
func (i identityMaster) Restart(ctx context.Context, p admin.Progress) error {
	return i.m.d.restartMaster(ctx, p)
}

// newClocks returns what compares this host's clock with those of the other members.
func (m *member) newClocks() *clocks.Watch {
	return clocks.NewWatch(clocks.Config{
		Self: m.d.id, Log: m.Consensus, Wall: m.d.wall, Interval: m.d.clockInterval, Logger: m.log,
		Read: func(ctx context.Context, id node.ID) (clocks.Reading, error) {
			s, err := m.reports.Ask(ctx, id)
			return clocks.Reading{Wall: s.Now, Serial: s.Serial}, err
		},
		Observe: func(serial hlc.Timestamp) error { return m.role.observe(serial) },
	})
}

// newMinionView returns what this member sees of minions. A witness only has what the others report.
func (m *member) newMinionView() *minionview.View {
	cfg := minionview.Config{Self: m.d.id, Others: m.OtherMasters, Client: m.Client(), Logger: m.log}
	m.role.addMinions(&cfg)
	return minionview.New(cfg)
}

// nodeStats is what members report to each other of themselves.
type nodeStats = operator.Stats

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

// stats asks another node how far it is (consensus.Config.Stats).
func (m *member) stats(ctx context.Context, id node.ID) (consensus.PeerStats, error) {
	s, err := m.reports.Ask(ctx, id)
	return s.PeerStats, err
}

// localStats is what this node reports.
func (m *member) localStats() nodeStats {
	s := nodeStats{
		PeerStats: m.Consensus.LocalStats(), Sync: m.role.syncProgress(), Now: m.d.wall().UTC(), Identity: m.fingerprint,
		Reasons: operator.Reasons(m.d.checks.Report(health.ScopeReady)),
	}
	s.Syncing = len(s.Sync) > 0
	m.role.addStats(&s)
	return s
}

// problems lists what is wrong with the cluster as a whole.
func (m *member) problems(stats map[node.ID]nodeStats) []adminapi.Problem {
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

package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/statuspage"
)

// SetLogLevelVar gives operators the level of the process's logger.
func (d *Daemon) SetLogLevelVar(level *slog.LevelVar) { d.logLevels.Control(level) }

// jobVerbs returns what operators ask about jobs.
func (d *Daemon) jobVerbs() operator.Jobs { return operator.Jobs{Of: d.jobCache, Logger: d.log} }

func (d *Daemon) jobCache() (operator.JobCache, error) {
	s, err := d.service()
	if err != nil {
		return nil, err
	}
	return s.cache, nil
}

// ledgers returns what this node holds, or an error for operators.
func (d *Daemon) ledgers() (*operator.Ledgers, error) {
	m := d.current()
	if m == nil {
		return nil, d.errNoMember()
	}
	if m.svc == nil {
		return nil, adminapi.Errorf(
			adminapi.CodeInvalid, "ask on a node that has a salt-master", "a witness holds nothing to compare")
	}
	return m.svc.newLedgers(), nil
}

func (s *service) newLedgers() *operator.Ledgers {
	return operator.NewLedgers(operator.LedgersConfig{
		Self: s.m.d.id, Others: s.m.OtherMasters, Client: s.m.Client(), Sections: s.sections,
	})
}

// sections lists what verify compares, in the order in which it is shown. Whatever else is replicated is added here.
func (s *service) sections() []operator.Section {
	return []operator.Section{
		{Name: "keys", Holds: s.dir.Ledger, Decided: s.dir.Decided},
		{Name: "grains", Holds: s.data.Ledger},
		{Name: "pillar", Holds: s.data.PillarLedger},
		{Name: "mine", Holds: s.mines.Ledger},
		{Name: "tokens", Holds: s.tokens.Ledger},
		{Name: "roots", Holds: func() (ledger.Ledger, error) { return s.roots.Ledger(s.ctx) }, Decided: s.roots.Decided},
		{Name: "jobs", Holds: s.cache.Ledger, Rules: operator.JobRules(s.m.jobReplicas)},
	}
}

// nodeStats is what members report to each other of themselves.
type nodeStats = operator.Stats

// nodeStats asks another member.
func (m *member) nodeStats(ctx context.Context, id node.ID) (nodeStats, error) {
	return m.reports.Ask(ctx, id)
}

// allStats asks all members.
func (m *member) allStats(ctx context.Context, roster []state.Member) map[node.ID]nodeStats {
	return m.reports.AskAll(ctx, roster)
}

// localStats is what this node reports.
func (m *member) localStats() nodeStats {
	s := nodeStats{PeerStats: m.Consensus.LocalStats(), Sync: m.syncReport(), Now: m.d.wall().UTC()}
	s.Syncing = len(s.Sync) > 0
	s.Reasons = operator.Reasons(m.d.checks.Report(health.ScopeReady))
	s.Identity, s.IdentityShown = m.fingerprint, m.svc != nil && m.identity.Shown() && m.svc.masterServes()
	if m.svc != nil {
		s.Unanswered, s.Serial = m.svc.native.Returns.Aside(), m.svc.clock.Last()
		s.Own = m.d.inspector.Own()
	}
	return s
}

// row is one member as gossip and raft's configuration show it.
func (m *member) row(mem state.Member, st consensus.Status) adminapi.Member {
	return m.reports.Row(mem, st)
}

// newReports returns the membership as operators see it.
func (m *member) newReports() *operator.Cluster {
	cfg := operator.ClusterConfig{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Fingerprint: m.fingerprint,
		Log: m.Consensus, Gossip: m.Gossip, Client: m.Client(), Meta: m.meta, Stats: m.localStats,
		Sync: m.syncReport, ClockFresh: m.clocks.IsFresh, Problems: m.problems, Usable: m.ringNodes,
		Publisher:   func(string) (node.ID, bool) { return "", false },
		DrainWanted: func() bool { return false },
		FillNode:    func(*adminapi.Node) {},
		RootDirs:    func() []string { return nil },
	}
	if s := m.svc; s != nil {
		cfg.Publisher, cfg.DrainWanted, cfg.FillNode, cfg.RootDirs = s.jobs.Lookup, s.drain.Wanted, s.fillNode, s.roots.Dirs
	}
	return operator.NewCluster(cfg)
}

// problems lists what is wrong with the cluster as a whole.
func (m *member) problems(stats map[node.ID]nodeStats) []adminapi.Problem {
	out := slices.Concat(
		m.clocks.Problems(), m.admission.SecretProblems(), m.identity.Problems(), m.former.Problems(), ownProblems(stats))
	if m.svc != nil {
		out = append(out, operator.TwinProblems(m.svc.said.Twins())...)
	}
	return out
}

// fillNode adds the edges and everything behind them.
func (s *service) fillNode(n *adminapi.Node) {
	pub, req := s.pub.Stats(), s.reqs.Stats()
	if s.opened.Load() {
		n.Edges = []adminapi.Edge{
			{Name: "pub", Addresses: texts(s.pub.Addr()), Connections: pub.Subscribers, Cut: pub.Cut},
			{Name: "req", Addresses: texts(s.reqs.Addr()), Connections: req.Conns, InFlight: req.InFlight},
		}
	}
	n.Upstream = s.local.Report()
	n.Returns = s.native.ReturnsStatus()
	n.Wall = masterlink.WallLine(s.wall.Found())
	n.Files = s.native.FilesStatus()
	n.Roots = s.roots.Line()
	n.Jobs = masterlink.JobsLine(s.cache.Status())
	n.KeyStore = s.m.d.keyStore().Line(s.dir.Store())
}

func texts(addrs []net.Addr) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// newLocalMaster returns the local master as operators see it. The clients to it and the intake are made before.
func (s *service) newLocalMaster() *operator.LocalMaster {
	d := s.m.d
	return &operator.LocalMaster{
		Requests: s.req, Publications: s.sub, SignIn: s.intake, Options: d.master, ConfigPath: d.cfg.Salt.Config,
		ShareHangs: s.share.Hangs, Outdated: d.migration.MasterOutdated,
	}
}

// masterServes says whether the local master can take requests of minions.
func (s *service) masterServes() bool { return s.local.Serves() }

// masterProblem says what is wrong with the local master and what to do, empty when nothing is.
func (s *service) masterProblem(context.Context) string { return s.local.Problem() }

// newNode returns this process as operators see it.
func (d *Daemon) newNode() *operator.Node {
	return operator.NewNode(operator.NodeConfig{
		Self: d.id, Version: d.version, Started: d.started, Master: func() *localmaster.Config { return d.master },
		Options: d.cfg.Show, Checks: d.checks, Findings: d.inspector.Findings, Absence: d.absence,
		JoinProblem: d.joiner.Problem,
		Of: func() *operator.Cluster {
			if m := d.current(); m != nil {
				return m.reports
			}
			return nil
		},
	})
}

// absence says why this node has no running membership.
func (d *Daemon) absence() operator.Absence {
	if left, err := membership.ReadRemoval(d.cfg.Paths.StateDir); err == nil && left != nil {
		return operator.Absence{Removed: left.Sentence(), Rejoin: membership.RejoinHint}
	}
	record, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	return operator.Absence{Starting: err == nil && record != nil}
}

// errNoMember is the answer of a node without a running membership.
func (d *Daemon) errNoMember() error { return d.absence().Err() }

// currentService is this node's service for minions; nil on a node without a cluster, and on a witness.
func (d *Daemon) currentService() *service {
	if m := d.current(); m != nil {
		return m.svc
	}
	return nil
}

// service is currentService, or an error for an operator.
func (d *Daemon) service() (*service, error) {
	m := d.current()
	switch {
	case m == nil:
		return nil, d.errNoMember()
	case m.svc == nil:
		return nil, adminapi.Errorf(adminapi.CodeRefused, "ask on a node that has a salt-master",
			"a witness serves no minions")
	}
	return m.svc, nil
}

// isVoter says whether this node votes.
func (m *member) isVoter(st consensus.Status) bool { return slices.Contains(st.Voters, m.d.id) }

// outcome describes what bootstrap or join made of this node.
func (d *Daemon) outcome(ctx context.Context) (adminapi.Outcome, error) {
	seed, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	out := adminapi.Outcome{
		Node: string(d.id), ClusterID: seed.ClusterID, UUID: seed.UUID, Role: adminapi.RoleLearner,
		Message: fmt.Sprintf("%s is a member of the cluster %s", d.id, seed.ClusterID),
	}
	if m := d.current(); m != nil {
		if m.isVoter(m.Consensus.Status()) {
			out.Role = adminapi.RoleVoter
		}
		out.Ready = m.ready()
		if m.svc == nil {
			out.Role = adminapi.RoleWitness
		} else if m.svc.held.Load() {
			out.Next = append(out.Next, "systemctl restart salt-master: it has the ports for minions, "+
				"and goes to loopback; saltclusterd takes them then")
		} else if problem := m.svc.masterProblem(ctx); problem != "" {
			out.Next = append(out.Next, problem)
		}
	}
	return out, nil
}

// pageSource implements statuspage.Source.
type pageSource struct {
	*operator.Node
	operator.Jobs
	minionview.Verbs
	masterlink.WallVerbs
	roots rootsadmin.Verbs
}

// RootsStatus implements statuspage.Source.
func (s pageSource) RootsStatus(ctx context.Context) (adminapi.RootsStatus, error) {
	return s.roots.RootsStatus(ctx)
}

// statusPage makes the page, and what it shows over time.
func (d *Daemon) statusPage() (*statuspage.Page, *statuspage.Series) {
	return operator.NewPage(operator.PageConfig{
		Self: d.id, Source: pageSource{d.node, d.jobVerbs(), d.minionVerbs(), d.wallVerbs(), d.rootsVerbs()},
		Gatherer: d.reg, Logger: d.log,
	})
}

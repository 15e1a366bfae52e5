package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/router"
)

// role is what a member does beside voting: a service serves minions, a witness does nothing.
type role interface {
	Open(context.Context) error
	Close() error
	ready() bool                 // minions are served
	lead(context.Context)        // a duty of the leader
	meta() node.Meta             // what this node reports to the others about itself
	observe(hlc.Timestamp) error // a serial of another node
	arriving() bool              // this process has taken over a moment ago and has not found the cluster yet
	movesSubscribers() bool      // some still have the AES key before
	handle(*peerrpc.Mux)         // adds the calls of members
	routesChanged()
	completeRoutes(*router.View)
	awaitRoots(context.Context) error
	syncProgress() []adminapi.SyncPart
	problems() []adminapi.Problem

	// What a role adds to a report, or to what is asked.
	addStats(*nodeStats)
	addOutcome(*adminapi.Outcome)
	addJoinProgress(*joining.Progress)
	addReports(*operator.ClusterConfig)
	addSteps(*migration.Cluster)
	addKeys(*keysadmin.Config)
	addMinions(*minionview.Config)
}

// witness is the role of a member that votes and does nothing else: it has no salt-master, serves no minions and is not
// given the cluster's identity. It is the third voice of a cluster of two.
type witness struct{ m *member }

func (witness) Open(context.Context) error { return nil }

// Close hands the leadership over.
func (w witness) Close() error {
	w.m.leadership.Resign(w.m.patience())
	return nil
}

func (w witness) meta() node.Meta {
	return node.Meta{
		Build: w.m.d.version, Proto: protoVersion, Ready: w.m.Consensus.CaughtUp(), Witness: true, Roots: true,
		Level: state.Level, Tolerance: tolerance,
	}
}

func (witness) addOutcome(out *adminapi.Outcome) { out.Role = adminapi.RoleWitness }

func (witness) addReports(cfg *operator.ClusterConfig) {
	cfg.Publisher = func(string) (node.ID, bool) { return "", false }
	cfg.DrainWanted = func() bool { return false }
	cfg.FillNode = func(*adminapi.Node) {}
	cfg.RootDirs = func() []string { return nil }
}

func (witness) ready() bool                       { return false }
func (witness) lead(context.Context)              {}
func (witness) observe(hlc.Timestamp) error       { return nil }
func (witness) arriving() bool                    { return false }
func (witness) movesSubscribers() bool            { return false }
func (witness) handle(*peerrpc.Mux)               {}
func (witness) routesChanged()                    {}
func (witness) completeRoutes(*router.View)       {}
func (witness) awaitRoots(context.Context) error  { return nil }
func (witness) syncProgress() []adminapi.SyncPart { return nil }
func (witness) problems() []adminapi.Problem      { return nil }
func (witness) addStats(*nodeStats)               {}
func (witness) addJoinProgress(*joining.Progress) {}
func (witness) addSteps(*migration.Cluster)       {}
func (witness) addKeys(*keysadmin.Config)         {}
func (witness) addMinions(*minionview.Config)     {}

func (s *service) ready() bool { return s.opened.Load() }

// lead has this node resign when its share hangs.
func (s *service) lead(ctx context.Context) {
	if s.share.Shared() {
		s.m.leadership.ResignWhenShareHangs(ctx, s.share.Hung)
	}
}

// tolerance is how long this node waits for a heartbeat of the leader, in milliseconds.
var tolerance = uint16(consensus.DefaultTiming().Silence.Milliseconds())

// protoVersion is the newest version of the peer RPC that this build speaks.
const protoVersion = 1

func (s *service) meta() node.Meta {
	takesReturns, _ := s.native.Returns.Native("_return")
	return node.Meta{
		Build: s.m.d.version, Salt: s.m.d.master.Version.String(), Proto: protoVersion,
		Ready: s.serving.Load(), MasterUp: s.local.Serves(), Draining: s.drain.Draining(),
		Returns: takesReturns && s.serving.Load(), Mines: s.stores.TakesMines(),
		PillarCache: s.m.d.master.Bool("pillar_cache"), Roots: true, Level: state.Level,
		Tolerance:   tolerance,
		Subscribers: uint32(s.ports.Publish.Stats().Subscribers), Work: s.master.Load(),
	}
}

func (s *service) observe(serial hlc.Timestamp) error { return s.serials.Observe(serial) }

func (s *service) movesSubscribers() bool { return s.ports.Publish.Stats().OnPrevious > 0 }

// routesChanged has requests that wait for a master routed anew.
func (s *service) routesChanged() { s.proxy.NotifyMasters() }

// completeRoutes adds what the service for minions has.
func (s *service) completeRoutes(v *router.View) {
	v.Jobs, v.Relaying, v.Events = s.jobs, s.relay.InFlight, s.events
	v.Leader, v.Pusher = s.m.Consensus.Status().Leader, s.pusher()
}

// pusher names the minion that has pushed a file (router.View.Pusher).
func (s *service) pusher() func(path string) string {
	return s.master.Followed.Pusher(func(id string) bool {
		_, known := s.m.Consensus.View().Key(id)
		return known
	})
}

func (s *service) awaitRoots(ctx context.Context) error { return s.roots.AwaitFirst(ctx) }

func (s *service) syncProgress() []adminapi.SyncPart { return s.stores.Progress() }

func (s *service) problems() []adminapi.Problem { return operator.TwinProblems(s.master.Log.Twins()) }

func (s *service) addStats(st *nodeStats) {
	st.IdentityShown = s.m.identity.Shown() && s.local.Serves()
	st.Unanswered, st.Serial, st.Own = s.native.Returns.Aside(), s.serials.Last(), s.m.d.inspector.Own()
}

func (s *service) addOutcome(out *adminapi.Outcome) {
	if s.ports.IsHeld() {
		out.Next = append(out.Next, "systemctl restart salt-master: it has the ports for minions, "+
			"and goes to loopback; saltclusterd takes them then")
	} else if problem := s.local.Problem(); problem != "" {
		out.Next = append(out.Next, problem)
	}
}

// fillNode adds the edges and everything behind them.
func (s *service) fillNode(n *adminapi.Node) {
	if s.opened.Load() {
		n.Edges = s.ports.Report()
	}
	n.Upstream = s.local.Report()
	n.Returns = s.native.ReturnsStatus()
	n.Wall = masterlink.WallLine(s.wall.Found())
	n.Files = s.native.FilesStatus()
	n.Roots = s.roots.Line()
	n.Jobs = replication.DescribeJobs(s.stores.Jobs.Status())
	n.KeyStore = s.m.d.keyStore().Line(s.dir.Store())
}

func (s *service) addJoinProgress(p *joining.Progress) {
	p.HasMaster, p.Serving, p.WaitsFor = true, s.ready(), s.waitsFor()
	p.PortsHeld, p.KeysAdopted = s.ports.IsHeld(), s.dir.Settled()
}

func (s *service) addReports(cfg *operator.ClusterConfig) {
	cfg.Publisher, cfg.DrainWanted, cfg.FillNode, cfg.RootDirs = s.jobs.Lookup, s.drain.Wanted, s.fillNode, s.roots.Dirs
}

func (s *service) addSteps(c *migration.Cluster) { c.Steps = s.migration }

func (s *service) addKeys(cfg *keysadmin.Config) { cfg.Held = s.dir }

func (s *service) addMinions(cfg *minionview.Config) {
	d := s.m.d
	cfg.Service = &minionview.Service{
		StateDir: d.cfg.Paths.StateDir, Master: d.master, Keys: s.keys, Wall: s.wall,
		Subscribers: s.ports.Publish.Subscribers, Routes: s.m.Routes, Events: s.handled, Bus: s.master.Bus,
		Term: s.m.Term, Serving: s.opened.Load, HandedOver: s.handed.Load, PresenceEvents: d.cfg.Events.Presence,
		MinVersion: d.cfg.Edge.RequestMinimumVersion,
	}
}

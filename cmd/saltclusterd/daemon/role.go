package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
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
	subscribers() []edge.Subscriber // to the publish port
	problems() []adminapi.Problem

	// What a role adds to a report, or to what is asked.
	addStats(*operator.Stats)
	addOutcome(*adminapi.Outcome)
	addJoinProgress(*joining.Progress)
	addReports(*operator.ClusterConfig)
	addSteps(*migration.Cluster)
	addKeys(*keysadmin.Config)
}

// witness is the role of a member that votes and does nothing else: it has no salt-master, serves no minions and is not
// given the cluster's identity. It is the third voice of a cluster of two.
type witness struct{ m *member }

func (witness) Open(context.Context) error { return nil }

// Close hands the leadership over.
func (w witness) Close() error {
	w.m.leadership.Resign(w.m.gracefulContext())
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
func (witness) subscribers() []edge.Subscriber    { return nil }
func (witness) problems() []adminapi.Problem      { return nil }
func (witness) addStats(*operator.Stats)          {}
func (witness) addJoinProgress(*joining.Progress) {}
func (witness) addSteps(*migration.Cluster)       {}
func (witness) addKeys(*keysadmin.Config)         {}

func (s *service) ready() bool { return s.Opened.Load() }

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
		Ready: s.Serving.Load(), MasterUp: s.local.Serves(), Draining: s.drain.Draining(),
		Returns: takesReturns && s.Serving.Load(), Mines: s.stores.TakesMines(),
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
	v.Jobs, v.Relaying, v.Events = s.jobs.Table, s.relay.InFlight, s.events
	v.Leader = s.m.Consensus.Status().Leader
	v.Pusher = s.master.Followed.Pusher(func(id string) bool {
		_, known := s.m.Consensus.View().Key(id)
		return known
	})
}

func (s *service) awaitRoots(ctx context.Context) error { return s.roots.AwaitFirst(ctx) }

func (s *service) syncProgress() []adminapi.SyncPart { return s.stores.Progress() }
func (s *service) subscribers() []edge.Subscriber    { return s.ports.Publish.Subscribers() }
func (s *service) problems() []adminapi.Problem {
	return operator.DescribeDiffering(s.master.Log.DifferingReturns())
}

func (s *service) addStats(st *operator.Stats) {
	st.IdentityShown = s.m.identity.Shown() && s.local.Serves()
	st.Unanswered, st.Serial, st.Own = s.native.Returns.Aside(), s.serials.Last(), s.m.d.inspector.Own()
}

func (s *service) addOutcome(out *adminapi.Outcome) {
	if s.ports.IsHeld() {
		out.Next = append(out.Next, "systemctl restart salt-master: it frees the ports for minions and moves to loopback, "+
			"and saltclusterd takes the ports")
	} else if problem := s.local.Problem(); problem != "" {
		out.Next = append(out.Next, problem)
	}
}

// fillNode adds the edges and everything behind them.
func (s *service) fillNode(n *adminapi.Node) {
	if s.Opened.Load() {
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
	p.HasMaster, p.Serving, p.WaitsFor = true, s.ready(), s.WaitsFor()
	p.PortsHeld, p.KeysAdopted = s.ports.IsHeld(), s.dir.Settled()
}

func (s *service) addReports(cfg *operator.ClusterConfig) {
	cfg.Publisher, cfg.DrainWanted = s.jobs.Table.Lookup, s.drain.Wanted
	cfg.FillNode, cfg.RootDirs = s.fillNode, s.roots.Dirs
}

func (s *service) addSteps(c *migration.Cluster) { c.Steps = s.migration }

func (s *service) addKeys(cfg *keysadmin.Config) { cfg.Held = s.dir }

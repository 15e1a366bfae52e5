package daemon

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/publishing"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/cmd/saltclusterd/sharewatch"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/tokens"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/missedjobs"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/trace"
	"saltclusterd/sidecar/upstream"
	"saltclusterd/sidecar/wall"
)

// service is what minions see of a member: the two edges and everything between them and the local master.
type service struct {
	m      *member
	keys   *keyView
	dir    *keydir.Dir
	data   *datacache.Store
	mines  *datacache.Store
	tokens *tokens.Store
	roots  *rootsadmin.Roots
	cache  *jobs.Store // the master's job cache
	clock  *hlc.Clock  // of serials
	stamps *hlc.Clock  // of what the nodes know of minions

	req      *upstream.ReqClient
	sub      *upstream.SubClient
	local    *operator.LocalMaster
	bus      *localmaster.Bus
	hidden   *localmaster.Hidden
	sessions *localmaster.Sessions
	umask    *masterlink.Umask
	watch    *masterlink.Watch

	epochs     *epochs.Manager
	rotation   *rotation.Epochs
	signin     *signin.Service
	heard      *eventlog.Log
	said       *saltlog.Log
	native     *native.Service
	jobs       *router.Jobs
	known      *publishing.KnownJobs
	publisher  *publishing.Publisher
	eventRules *router.EventRules
	mirror     *mirror.Mirror
	hub        *fanout.Hub
	missed     *missedjobs.Republisher
	wall       *wall.Wall
	followed   *masterlink.FollowedOptions
	proxy      *sidecar.Proxy
	trace      *trace.Tracer // nil: nothing is traced
	relay      *relay.Client
	intake     *sidecar.Intake
	pub        *edge.PubEdge
	reqs       *edge.ReqEdge

	share     *sharewatch.Watch
	migration *migration.Steps

	alone     *recovery.Alone // serving without a majority
	late      *latecomer
	drain     *drain.Runner
	published *drain.RunningJobs

	learn   chan struct{} // the local master may have a new key
	serving atomic.Bool   // peers may hand over requests and publications
	opened  atomic.Bool   // so may minions: the edges are open
	held    atomic.Bool   // all is ready, but another process, the salt-master as a rule, has their ports
	settled atomic.Bool   // everything is open, and a process before this one has ended
	handed  atomic.Bool   // another process serves instead
	step    atomic.Value  // string: what Open waits for

	ctx       context.Context
	cancel    context.CancelFunc
	stopClock func()
	wg        sync.WaitGroup
	open      openSet
}

// newService puts the parts together; nothing runs before Open.
func newService(m *member) (*service, error) {
	s := &service{m: m, learn: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // members may ask before Open
	s.alone, s.late = s.newAlone(), newLatecomer()
	s.published = drain.NewRunningJobs(publishing.Timeout(m.d.master), func(jid string) (got, want int) {
		return publishing.CountReturns(m.d.master, jid)
	})
	s.umask = masterlink.NewUmask(m.d.master, filepath.Join(m.d.cfg.Paths.StateDir, "umask"), m.d.log)
	floor, err := hlc.ReadFloor(s.clockPath())
	if err != nil {
		return nil, err
	}
	reference := m.clocks.Reference()
	s.clock, s.stamps = hlc.New(reference.Time, floor), hlc.NewBounded(reference.Guess)
	s.migration = s.newMigrationSteps()
	if s.share, err = s.newShareWatch(); err != nil {
		return nil, err
	}
	if err := s.buildMaster(); err != nil {
		return nil, err
	}
	if err := s.buildEdges(); err != nil {
		return nil, err
	}
	if err := s.buildProxy(); err != nil {
		return nil, err
	}
	s.drain = s.newDrain()
	m.d.reg.MustRegister(numbers{s})
	return s, nil
}

func (s *service) clockPath() string { return clockPath(s.m.d.cfg.Paths.StateDir) }

func clockPath(stateDir string) string { return filepath.Join(stateDir, "clock") }

// authEvent says and fires what a stock master does for a sign-in it accepts (salt/channel/server.py _auth).
func (s *service) authEvent(a saltwire.AuthRequest) {
	s.said.SignIn(a.ID)
	options := s.followed.Load()
	if !options.AuthEvents {
		return
	}
	if err := s.bus.FireAuth(s.ctx, options.SignInEvent(a)); err != nil {
		s.m.log.Warn("event not fired", "minion", a.ID, "err", err)
	}
}

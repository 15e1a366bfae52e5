package daemon

import (
	"context"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/metrics"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/minionkeys"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/ports"
	"saltclusterd/cmd/saltclusterd/publishing"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/cmd/saltclusterd/rsabackend"
	"saltclusterd/cmd/saltclusterd/sharewatch"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/trace"
	"saltclusterd/sidecar/wall"
)

// service is what minions see of a member: the two edges and everything between them and the local master.
type service struct {
	m *member
	lifecycle.Progress
	disk
	publications
	requests

	keys     *minionkeys.Keys
	serials  *hlc.Clock
	stamps   *hlc.Clock // of what the nodes know of minions
	master   *masterlink.Link
	local    *operator.LocalMaster
	native   *native.Service
	rotation *rotation.Epochs
	ports    *ports.Ports
	alone    *recovery.Alone // serving without a majority
	drain    *drain.Runner
	minions  *minionview.View
	parts    *lifecycle.Parts

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// disk is what a service has of the files of the master and of the cluster.
type disk struct {
	dir       *keydir.Dir
	stores    *replication.Stores
	roots     *rootsadmin.Roots
	share     *sharewatch.Watch
	migration *migration.Steps
}

// publications are the ways of a job from the master to all minions.
type publications struct {
	jobs    *publishing.Publications
	running *drain.RunningJobs
	hub     *fanout.Hub
}

// requests are the ways of a request of a minion.
type requests struct {
	signin  *signin.Service
	wall    *wall.Wall
	proxy   *sidecar.Proxy
	relay   *relay.Client
	trace   *trace.Tracer // nil: nothing is traced
	epochs  *epochs.Manager
	handled *eventlog.Log
	events  *router.EventRules
	mirror  *mirror.Mirror
}

// newService puts the parts together; nothing runs before Open.
func newService(m *member) (_ *service, err error) {
	s := &service{m: m}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // members may ask before Open
	defer func() {
		if err != nil {
			s.cancel()
		}
	}()
	for _, build := range []func() error{
		s.buildClocks, s.buildMaster, s.buildPorts, s.buildPublications, s.buildStores, s.buildRequests,
	} {
		if err := build(); err != nil {
			return nil, err
		}
	}
	s.drain, s.minions = s.newDrain(), s.newMinionView()
	m.identity.SetMaster(identity.Master{
		Options: s.master.Config, PubSigner: s.master.PubSigner, Answer: s.signin.Answer, SignIn: s.master.Intake.Learn,
		Restart: m.d.restartMaster,
	})
	s.parts = lifecycle.NewParts(s.share.ClosePart, s.listParts())
	m.d.reg.MustRegister(metrics.NewServiceCollector(metrics.Service{
		View: m.Consensus.View, Publish: s.ports.Publish, Returns: s.native.Returns, Draining: s.drain.Draining,
		Jobs: func() metrics.JobCounts { return metrics.JobCounts(s.running.Counts()) },
	}))
	return s, nil
}

func (s *service) buildClocks() error {
	floor, err := hlc.ReadFloor(membership.ClockPath(s.m.d.cfg.Paths.StateDir))
	if err != nil {
		return err
	}
	reference := s.m.clocks.Reference()
	s.serials, s.stamps = hlc.New(reference.Time, floor), hlc.NewBounded(reference.Guess)
	s.alone = s.newAlone()
	return nil
}

// buildMaster makes what connects to the local master, and the key directory.
func (s *service) buildMaster() (err error) {
	d, m := s.m.d, s.m
	if s.share, err = sharewatch.New(sharewatch.Config{
		Self: d.id, Shared: d.shares(), PKIDir: d.master.PkiDir,
		StateDir: d.cfg.Paths.StateDir, SockDir: d.master.SockDir, CacheDir: d.master.CacheDir,
		Others: m.OtherMasters, Client: m.Client(), Logger: d.log, Registerer: d.reg,
	}); err != nil {
		return err
	}
	var turns *keydir.Shared // in a shared pki_dir
	if s.share.Shared() {
		turns = &keydir.Shared{Latest: m.Consensus.Barrier}
	}
	if s.master, err = s.newMasterLink(); err != nil {
		return err
	}
	s.local = &operator.LocalMaster{
		Requests: s.master.Requests, Publications: s.master.Publications, SignIn: s.master.Intake, Options: d.master,
		ConfigPath: d.cfg.Salt.Config, ShareHangs: s.share.Hangs, Outdated: d.migration.MasterOutdated,
	}
	s.dir, err = keydir.New(keydir.Config{
		PKIDir: d.master.PkiDir, StateDir: membership.KeyDir(d.cfg.Paths.StateDir), Node: d.id,
		Log: minionkeys.KeyLog{Node: m.Consensus}, Founder: m.Record.Founder, Current: m.Consensus.CaughtUp,
		Now: m.Consensus.Now, Shared: turns, Store: d.keyStore().Geometry(),
		MaxLosses: d.cfg.SignIn.KeysMaxDelete, HoldAll: d.inspector.TakesKeys, Logger: d.log, Registerer: d.reg,
	})
	s.migration = s.newMigrationSteps() // of what was made above
	return err
}

// newMasterLink makes the connections to the local master. What they notify is made later.
func (s *service) newMasterLink() (*masterlink.Link, error) {
	m, d := s.m, s.m.d
	return masterlink.NewLink(s.ctx, masterlink.LinkConfig{
		Options: d.cfg, Master: d.master, KeyStore: d.keyStore(), HiddenID: s.hiddenID(), Public: m.public,
		ReadKey: d.masterKeys().ReadFile,
		Deliver: func(p fanout.Publication) error { return s.jobs.Publisher.Publish(p) },
		Unfired: func() uint64 { return s.native.Returns.Unfired() },
		Upgrade: d.renew,
		Latest:  d.inspector.UseLatest, Reread: s.followOptions,
		VersionChanged: func() { d.checks.Kick("version") }, OptionsChanged: func() { d.checks.Kick("options") },
		Restarted: func() {
			s.native.Returns.MasterStarted()
			s.proxy.NotifyMasters()
		},
		Connected: func() { s.jobs.Missed.NotifyConnected() },
		SignInChanged: func() {
			m.Gossip.UpdateMeta()
			m.RequestRoutes()
		},
		Logger: d.log, Registerer: d.reg,
	})
}

// followOptions follows the options that the master has started with; with an error those of before hold.
func (s *service) followOptions(now *localmaster.Config, err error) {
	switch {
	case now == nil:
		s.native.LeaveToMaster(err)
	case err == nil:
		s.stores.FollowOptions(now)
		s.wall.Use(masterlink.WallPolicy(now))
		s.native.Use(now)
		s.ports.UseMaster(now)
	}
}

func (s *service) buildPorts() (err error) {
	s.ports, err = ports.New(ports.Config{
		Options: s.m.d.cfg, Serve: func(ctx context.Context, r *edge.Request) { s.proxy.ServeReq(ctx, r) },
		Identify: func(said []byte) (string, bool) { return s.proxy.IdentifySubscriber(said) },
		Targeted: func() bool { return !s.master.HasSyndics() }, Master: s.m.d.master,
		Listen: s.m.d.sockets.ListenBare, Logger: s.m.log, Registerer: s.m.d.reg,
	})
	return err
}

// buildPublications makes what publishes jobs of the local master and what has those of all masters. What they notify
// is made later.
func (s *service) buildPublications() error {
	d := s.m.d
	s.running = drain.NewRunningJobs(publishing.Timeout(d.master), func(jid string) (got, want int) {
		return publishing.CountReturns(d.master, jid)
	})
	s.jobs = publishing.New(publishing.Config{
		Self: d.id, Master: d.master, Latest: s.master.Config, View: s.m.Consensus.View, RunDir: d.cfg.Paths.RunDir,
		Shared: d.shares(), LateJobs: d.cfg.Edge.LateJobs, Released: s.Handed.Load,
		SyndicReturns: func() wall.Mode { return s.wall.Mode(wall.SyndicReturns) }, Notify: []func(saltwire.PubPeek, []byte){
			s.running.Add,
			func(peek saltwire.PubPeek, _ []byte) {
				s.stores.Jobs.Published(peek.JID)
				s.master.Umask.NotifyPublished(peek.JID)
			},
		},
		Hub: func() publishing.Sender { return s.hub }, Logger: d.log, Registerer: d.reg,
		Cached: func(jid string) (string, bool) { return s.stores.Jobs.Whole(jid) },
	})
	return nil
}

// buildStores makes what all nodes have alike.
func (s *service) buildStores() (err error) {
	m, d := s.m, s.m.d
	seeds := epochs.NewSeeds(time.Now)
	s.keys = minionkeys.New(minionkeys.Config{
		Log: m.Consensus, Dir: s.dir, Seeds: seeds, Audit: m.Audit, AwaitRevision: m.AwaitRevision, Alone: s.alone.Serving,
		BeginEpoch: func(v state.View) error { return s.rotation.Begin(v) }, Now: m.Consensus.Now,
	})
	s.stores, err = replication.New(replication.Config{
		Self: d.id, Options: d.cfg, Master: d.master, Member: m.Member, Log: m.Consensus, Since: m.Since, Keys: s.keys,
		Stamps: s.stamps, Umask: s.master.Umask.Mask, LeftToShare: d.leftToShare,
		JobsShared:  d.shares() && !d.migration.StandsIn(),
		JobReceived: s.jobs.Missed.Seen, JobContested: s.jobs.Table.Contested, Waiting: s.WaitFor,
		PillarComes: func(id string) { s.proxy.PillarComes(id) }, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return err
	}
	s.roots, err = s.newRoots()
	if err != nil {
		return err
	}
	return s.buildEpochs(seeds)
}

// buildEpochs makes what seals for minions: sign-ins, publications, and the keys of both.
func (s *service) buildEpochs(seeds *epochs.Seeds) error {
	m, d := s.m, s.m.d
	s.epochs = epochs.New(m.key, time.Now, func(id string, n uint64) { s.hub.AnnounceSignIn(id, n) })
	operations, err := rsabackend.Select(d.cfg.SignIn.RSABackend, m.key, d.log, d.reg)
	if err != nil {
		return err
	}
	s.relay = relay.NewClient(m.Port.HTTPClient())
	s.signin = signin.New(signin.Config{
		Identity: operations, PubSigner: s.master.Followed.PubSigner, PublishPort: d.cfg.Edge.PublishPort, Epochs: s.epochs,
		Keys: s.keys, Master: s.master.Requests, Way: m.RouteSignIn, Peers: s.relay, Sessions: s.master.Sessions,
		AskAll: s.master.Followed.AskAll, Pinned: m.identity.RecordPin,
		Event:    func(a saltwire.AuthRequest) { s.master.NotifySignIn(s.ctx, a) },
		SignedIn: func(id string, token []byte) bool { return s.hub.SignedIn(id, token) },
		Share:    float64(d.cfg.SignIn.CPUPercent) / 100, Newcomers: s.keys.NewcomerLimits(d.cfg.SignIn),
		Logger: d.log, Registerer: d.reg,
	})
	s.hub = fanout.New(s.hubConfig(operations))
	s.rotation = rotation.NewEpochs(rotation.EpochsConfig{
		View: m.Consensus.View, Watch: m.Consensus.Watch, Manager: s.epochs, Seeds: seeds, Publisher: s.ports.Publish,
		SignIns: s.signin, Nudge: s.hub.Nudge, AnswerBoth: m.identity.AnswerBoth, SetPeers: s.hub.SetPeers,
		CaughtUp: m.Consensus.CaughtUp, RotateWindow: d.cfg.Edge.RotateWindow, Logger: d.log,
	})
	return nil
}

// hubConfig is what publications go by.
func (s *service) hubConfig(signer fanout.Signer) fanout.Config {
	m, d := s.m, s.m.d
	return fanout.Config{
		Self: d.id, Edge: s.ports.Publish, Epochs: s.epochs, Signer: signer, Algorithm: s.master.Followed.Algorithm,
		Clock: s.serials, HTTP: m.Port.HTTPClient(), Ways: m.Port, From: peer.FromContext, JobSeen: s.jobs.Known.Record,
		SignedIn: s.epochs.Given, Withhold: s.keys.TooFarBehind, LeaveOut: s.keys.LeaveOut,
		Hold: func() { s.rotation.AwaitRotation(s.ctx) }, Away: func(id node.ID) bool { return !m.Gossip.Alive(id) },
		Minority: func() bool { return !m.Consensus.Status().HasQuorum }, Logger: d.log, Registerer: d.reg,
		NotLate: func() bool { return !d.cfg.Edge.LateJobs || s.master.HasSyndics() },
	}
}

// newAlone makes what lets this node serve without a majority.
func (s *service) newAlone() *recovery.Alone {
	m := s.m
	return recovery.NewAlone(recovery.AloneConfig{
		Self: m.d.id, Log: m.Consensus, Contact: m.d.contact, Dial: m.Port.Dial,
		AwaitKeys: func(ctx context.Context, rev uint64) error { return s.dir.WaitSynced(ctx, rev) },
		Arriving:  s.arriving, Waiting: s.WaitFor, MajorityTimeout: m.d.aloneAfter, Logger: m.log,
		End: func(reason string) { m.Fail(&ending{reason, func() error { return nil }}) },
	})
}

// newDrain makes what carries out drains of this node.
func (s *service) newDrain() *drain.Runner {
	m := s.m
	return drain.New(drain.Config{
		Self: m.d.id, Log: m.Consensus, Routes: m.Routes, Publish: s.ports.Publish, Requests: s.ports.Requests,
		Returns: s.native.Returns, Cache: s.stores.Jobs, Jobs: s.running,
		Announce: func(draining bool) {
			m.d.checks.SetDraining(draining)
			m.Gossip.UpdateMeta()
			m.UpdateRoutes()
		},
		Resign: m.leadership.Resign, Reopen: s.ports.Reopen, Fail: m.Fail,
		AnnounceTime: m.d.cfg.Edge.DrainAnnounce, DrainTime: m.d.cfg.Edge.DrainTime, Logger: m.log,
	})
}

// newMinionView makes what answers which minions are seen where and how.
func (s *service) newMinionView() *minionview.View {
	d := s.m.d
	return minionview.New(minionview.Config{
		Connections: s.m.connections(), StateDir: d.cfg.Paths.StateDir, Master: d.master, Keys: s.keys, Wall: s.wall,
		Routes: s.m.Routes, Events: s.handled, Bus: s.master.Bus, Term: s.m.Term, Serving: s.Opened.Load, Logger: s.m.log,
		HandedOver: s.Handed.Load, PresenceEvents: d.cfg.Events.Presence, MinVersion: d.cfg.Edge.RequestMinimumVersion,
	})
}

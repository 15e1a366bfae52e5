package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/share"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/trace"
	"saltclusterd/sidecar/upstream"
	"saltclusterd/sidecar/wall"
	"saltclusterd/sidecar/zmtp"
)

// service is what minions see of a member: the two edges and everything between them and the local master.
type service struct {
	m      *member
	keys   *keyView
	dir    *keydir.Dir
	data   *datacache.Store
	mines  *datacache.Store
	tokens *tokens.Store
	trees  *trees
	cache  *jobs.Store  // the master's job cache
	share  *share.Share // nil: the nodes share no file system
	clock  *hlc.Clock

	req      *upstream.ReqClient
	sub      *upstream.SubClient
	bus      *localmaster.Bus
	hidden   *localmaster.Hidden
	sessions *localmaster.Sessions
	umask    *masterUmask

	epochs        *epochs.Manager
	signin        *signin.Service
	returns       *returns.Service
	fired         *events.Service
	returnOptions *localmaster.Config // which the returns' mode was made for
	files         *fileserve.Server
	fileOptions   *localmaster.Config // which the files' settings were made for
	mined         *mines.Service
	mineOptions   *localmaster.Config // which the settings for mines were made for
	jobs          *router.Jobs
	eventRules    *router.EventRules
	mirror        *mirror.Mirror
	hub           *fanout.Hub
	wall          *wall.Wall
	since         time.Time // when this process began to see what is published
	proxy         *sidecar.Proxy
	trace         *trace.Tracer // nil: nothing is traced
	relay         *relay.Client
	intake        *sidecar.Intake
	pub           *edge.PubEdge
	reqs          *edge.ReqEdge

	back  chan struct{}          // the local master was started
	newer atomic.Pointer[string] // what version it has, when that is another than the one served

	late      *latecomer
	drain     *drainer
	published *jobWatch
	presence  *presenceKeeper

	gaveUp atomic.Uint64 // the removal for whose rotation no publication waits any more

	behind    atomic.Int64           // since when the roots are behind the cluster, Unix time in ns; 0: they are not
	misplaced atomic.Pointer[string] // what is on the share and must not be

	unmoved atomic.Bool // subscribers still have to hear of the epoch in force

	learn   chan struct{} // the local master may have a new key
	serving atomic.Bool   // peers may hand over requests and publications
	opened  atomic.Bool   // so may minions: the edges are open
	held    atomic.Bool   // all is ready, but another process, the salt-master as a rule, has their ports
	settled atomic.Bool   // everything is open, and a process before this one has ended
	handed  atomic.Bool   // another process serves instead
	kept    atomic.Bool   // the roots are open
	alone   atomic.Bool   // serving from memory: no majority was found, see alone.go
	step    atomic.Value  // string: what Open waits for

	ctx       context.Context
	cancel    context.CancelFunc
	stopClock func()
	wg        sync.WaitGroup
	partsMu   sync.Mutex
	open      []closer
}

// newService puts the parts together; nothing runs before Open.
func newService(m *member) (*service, error) {
	s := &service{m: m, learn: make(chan struct{}, 1), back: make(chan struct{}, 1)}
	s.drain, s.late = newDrainer(s), newLatecomer()
	s.published = newJobWatch(s.jobPatience(), s.jobProgress)
	s.presence = newPresenceKeeper(s)
	s.umask = newMasterUmask(m.d.master, filepath.Join(m.d.cfg.Paths.StateDir, umaskFile), m.d.log)
	floor, err := hlc.ReadFloor(s.clockPath())
	if err != nil {
		return nil, err
	}
	s.clock = hlc.New(time.Now, floor)
	if err := s.buildShare(); err != nil {
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
	m.d.reg.MustRegister(numbers{s})
	return s, nil
}

func (s *service) clockPath() string { return clockPath(s.m.d.cfg.Paths.StateDir) }

func clockPath(stateDir string) string { return filepath.Join(stateDir, "clock") }

// buildMaster makes what talks to the local master, and the key directory.
func (s *service) buildMaster() error {
	d, cfg := s.m.d, s.m.d.cfg
	s.req = upstream.NewReqClient(upstream.ReqConfig{
		Addr: d.master.ReqAddr(), MaxConns: cfg.Salt.UpstreamConnections, Timeout: cfg.Salt.ForwardTimeout,
		Heartbeat: masterHeartbeat, HeartbeatTimeout: masterSilence, Probe: masterProbe(), StuckAfter: cfg.Salt.StuckAfter,
		OnUp: s.masterUp, Logger: d.log, Registerer: d.reg,
	})
	s.bus = localmaster.NewBus(d.master, localmaster.BusOptions{
		FireOnly: d.master.Version.Major >= 3007 && len(cfg.Events.Mirror) == 0, Serving: s.workersAnswer,
		Logger: d.log, Registerer: d.reg,
	})
	s.hidden = localmaster.NewHidden(d.master, localmaster.HiddenOptions{
		ID: s.hiddenID(), KeyDir: filepath.Join(cfg.Paths.StateDir, "hidden"), Requester: s.req, Place: d.placeHidden, Logger: d.log,
	})
	so, err := localmaster.SessionsOf(d.master)
	if err != nil {
		return err
	}
	so.Logger = d.log
	s.sessions = localmaster.NewSessions(so)
	s.sub = upstream.NewSubClient(upstream.SubConfig{
		Addr: d.master.PubAddr(), OnMessage: func(parts [][]byte) { s.intake.Message(s.ctx, parts) },
		Heartbeat: masterHeartbeat, HeartbeatTimeout: masterSilence,
		OnConnect: s.masterBack, Logger: d.log, Registerer: d.reg,
	})
	s.dir, err = keydir.New(keydir.Config{
		PKIDir: d.master.PkiDir, StateDir: filepath.Join(cfg.Paths.StateDir, "keydir"), Node: d.id,
		Log: keyLog{s.m.cons}, Founder: s.m.seed.Founder, Current: s.m.cons.CaughtUp, Shared: s.turns(), Store: d.mirrored(),
		Logger: d.log, Registerer: d.reg,
	})
	return err
}

// buildEdges makes 4505 and 4506.
func (s *service) buildEdges() (err error) {
	d, cfg := s.m.d, s.m.d.cfg
	pub, req := cfg.EdgeAddresses(localAddrs())
	e := cfg.Edge
	s.pub, err = edge.NewPubEdge(edge.PubConfig{
		Addrs: pub, Proxies: e.Proxies(), MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		QueueMessages: e.PubQueueMessages, QueueBytes: int64(e.PubQueueBytes), HandshakeTimeout: e.HandshakeTimeout,
		Heartbeat: e.Heartbeat, HeartbeatTimeout: e.HeartbeatTimeout,
		Listen: d.sockets.Listen, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return err
	}
	s.reqs, err = edge.NewReqEdge(edge.ReqConfig{
		Addrs: req, Proxies: e.Proxies(), Limits: zmtp.Limits{MaxFrame: int64(e.MaxRequestSize), MaxMessage: int64(e.MaxRequestSize)},
		MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		MaxInFlight: e.MaxInFlight, MaxInFlightPerConn: e.MaxInFlightPerConnection, MaxMemory: int64(e.MaxRequestMemory),
		MaxUnread:        int64(e.MaxRequestMemory),
		HandshakeTimeout: e.HandshakeTimeout,
		Handler:          edgeHandler{s}, Listen: d.sockets.Listen, Logger: d.log, Registerer: d.reg,
	})
	return err
}

// edgeHandler lets the edge be made before the proxy.
type edgeHandler struct{ s *service }

// ServeReq implements edge.ReqHandler.
func (h edgeHandler) ServeReq(ctx context.Context, r *edge.Request) { h.s.proxy.ServeReq(ctx, r) }

// buildProxy makes the way of a request and the way of a publication.
func (s *service) buildProxy() error {
	d, m := s.m.d, s.m
	s.keys = &keyView{m: m, settled: s.keysSettled, synced: s.keysSynced}
	var err error
	if s.data, err = s.newMinionData(datacache.Data); err != nil {
		return err
	}
	if s.mines, err = s.newMinionData(datacache.Mine); err != nil {
		return err
	}
	if s.tokens, err = s.newTokens(); err != nil {
		return err
	}
	if s.trees, err = s.newTrees(); err != nil {
		return err
	}
	if s.cache, err = s.newJobs(); err != nil {
		return err
	}
	s.jobs = router.NewJobs(0)
	s.relay = relay.NewClient(m.port.HTTPClient())
	s.epochs = epochs.New(m.key, time.Now, func(id string, n uint64) { s.hub.AnnounceSignIn(id, n) })
	pubSigner, err := s.pubSigner()
	if err != nil {
		return err
	}
	operations := m.operations()
	s.signin = signin.New(signin.Config{
		Identity: operations, PubSigner: pubSigner, PublishPort: d.cfg.Edge.PublishPort, Epochs: s.epochs, Keys: s.keys,
		Master: s.req, Way: s.wayOfSignIn, Peers: s.relay, Sessions: s.sessions, AskAll: d.master.Int("max_minions") > 0, Event: s.authEvent, Pinned: s.pinned,
		Share: float64(d.cfg.SignIn.CPUPercent) / 100, Newcomers: s.newcomers(), Logger: d.log, Registerer: d.reg,
	})
	s.hub = fanout.New(fanout.Config{
		Self: d.id, Edge: s.pub, Epochs: s.epochs, Signer: operations, Algorithm: s.publishAlgorithm(), Clock: s.clock,
		HTTP: m.port.HTTPClient(), From: peer.FromContext, JobSeen: s.jobs.Record, SignedIn: s.epochs.Given, Hold: s.awaitRotation,
		Logger: d.log, Registerer: d.reg,
	})
	s.intake = sidecar.NewIntake(sidecar.IntakeConfig{
		SignIn: s.hidden, ClusterPub: m.public, Deliver: s.publish, Logger: d.log,
	})
	if err := s.buildReturns(); err != nil {
		return err
	}
	s.buildFiles()
	if err := s.buildMines(); err != nil {
		return err
	}
	if err := s.buildEvents(); err != nil {
		return err
	}
	s.trace = trace.New(trace.Config{
		Endpoint: d.cfg.Health.TraceEndpoint, OneIn: d.cfg.Health.TraceOneIn, IDs: d.cfg.Health.TraceIDs,
		Node: string(d.id), Cluster: d.cfg.Cluster.ID, Version: d.version, Logger: d.log, Registerer: d.reg,
	})
	s.proxy = sidecar.NewProxy(sidecar.Config{
		Guard: s.buildGuard(), View: m.routes, SignIn: s.signin, Keys: s.keys, Master: s.req, Sessions: s.sessions,
		Relay: s.relay, Epochs: s.epochs, Returns: s.returns, Events: s.fired, Files: servedFiles{s}, Mines: answeredMines{s},
		MasterAES: s.intake.MasterAES, Done: s.carriedOut, Trace: s.trace,
		ForwardTimeout: d.cfg.Salt.ForwardTimeout, Logger: d.log, Registerer: d.reg,
	})
	return nil
}

// publishAlgorithm is how the local master signs publications; empty when it does not.
func (s *service) publishAlgorithm() string {
	if !s.m.d.master.Bool("sign_pub_messages") {
		return ""
	}
	return s.m.d.master.Text("publish_signing_algorithm")
}

// pubSigner reads what `master_sign_pubkey: True` needs; nil when it is off.
func (s *service) pubSigner() (signin.PubSigner, error) {
	return readPubSigner(s.m.d, s.m.public)
}

// Open waits until this node has caught up, then opens everything, the edges last.
func (s *service) Open(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.step.Store("catching up with the cluster")
	if err := s.awaitCluster(ctx); err != nil {
		return err
	}
	s.keepClock()
	if err := s.begin(s.m.cons.View()); err != nil {
		return err
	}
	if s.share != nil {
		if err := s.share.Open(ctx); err != nil {
			return err
		}
		s.open = append(s.open, s.share)
		s.wg.Go(s.lookForMisplaced)
	}
	s.makeCache()
	s.umask.look(ctx) // before anything is written
	for _, part := range []struct {
		name string
		open func(context.Context) error
		part closer
	}{
		{"key directory", s.dir.Open, s.dir},
		{"requests to the master", s.req.Open, s.req},
		{"event bus", s.bus.Open, s.bus},
		{"mirror of events", s.mirror.Open, s.mirror},
		{"returns", s.returns.Open, s.returns},
		{"events of minions", s.fired.Open, s.fired},
		{"sign-in", s.signin.Open, s.signin},
		{"fan-out", s.hub.Open, s.hub},
		{"minion data", s.data.Open, s.data},
		{"mines", s.mines.Open, s.mines},
		{"tokens", s.tokens.Open, s.tokens},
		{"roots", s.openTrees, treesPart{s}},
		{"jobs", s.cache.Open, s.cache},
		{"publications of the master", s.sub.Open, s.sub},
	} {
		if err := part.open(ctx); err != nil {
			return fmt.Errorf("open %s: %w", part.name, err)
		}
		s.open = append(s.open, part.part)
	}
	s.open = append(s.open, closerFunc(s.cancel)) // before the subscription: its last message may wait for a sign-in
	s.wg.Go(func() { s.keepLearning(s.ctx) })
	s.wg.Go(func() { s.watchVersion(s.ctx) })
	s.wg.Go(func() { s.watchKeyStore(s.ctx) })
	s.wg.Go(func() { s.umask.follow(s.ctx) })
	s.wg.Go(func() { s.published.watch(s.ctx, s.shareHangs) })
	s.wg.Go(func() { s.follow(s.ctx) })
	s.recallProtocols()
	s.wg.Go(func() { s.keepProtocols(s.ctx) })
	if s.alone.Load() {
		s.wg.Go(func() { s.findBack(s.ctx) })
	}
	s.late.open.Store(true)
	if err := s.catchUp(ctx); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	return s.openEdges(ctx)
}

// keepClock keeps the clock's floor on disk until stopClock.
func (s *service) keepClock() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		s.clock.KeepReserved(ctx, s.clockPath(), s.complain("clock floor not stored"))
	})
	s.stopClock = func() {
		cancel()
		<-done
	}
}

// closerFunc makes the end of a context a part like others.
type closerFunc func()

func (f closerFunc) Close() error {
	f()
	return nil
}

// openEdges opens 4505 and 4506. A port that is taken is tried again: the master may not have moved to loopback yet.
func (s *service) openEdges(ctx context.Context) error {
	s.trace.Open()
	s.open = append(s.open, s.trace, s.files, s.proxy)
	s.serving.Store(true)
	s.m.gossip.UpdateMeta()
	if err := s.drain.awaitWelcome(ctx); err != nil {
		return err
	}
	s.step.Store("opening 4505 and 4506, which another process holds")
	held := func() { s.held.Store(true) }
	if err := retryListen(ctx, s.m.log, s.pub.Open, held); err != nil {
		return err
	}
	s.open = append(s.open, s.pub)
	if err := retryListen(ctx, s.m.log, s.reqs.Open, held); err != nil {
		return err
	}
	s.open = append(s.open, s.reqs)
	s.held.Store(false)
	s.wg.Go(s.watchEdges)
	s.opened.Store(true)
	s.wg.Go(func() { s.drain.follow(s.ctx) })
	s.keepPresence()
	s.settled.Store(true)
	s.goOnMigrating()
	s.m.log.Info("serving minions", "node", s.m.d.id)
	return nil
}

// watchEdges ends the daemon when an edge has ended by itself: a node that minions cannot reach must not look healthy.
func (s *service) watchEdges() {
	select {
	case <-s.ctx.Done():
	case <-s.pub.Done():
		s.m.fail(errors.New("the publish port ended"))
	case <-s.reqs.Done():
		s.m.fail(errors.New("the request port ended"))
	}
}

// waitsFor says what still has to happen before minions are served; empty when they are.
func (s *service) waitsFor() string {
	if s.opened.Load() {
		return ""
	}
	step, _ := s.step.Load().(string)
	return step
}

// Close closes what is open, the edges first.
func (s *service) Close() error {
	switch {
	case s.handed.Load(): // another process goes on
	case s.opened.Swap(false):
		s.drain.leave(s.m.patience())
	default:
		s.drain.handLeadership(s.m.patience())
	}
	s.serving.Store(false)
	s.late.open.Store(false)
	var errs []error
	for i := len(s.open) - 1; i >= 0; i-- {
		errs = append(errs, s.end(s.open[i]))
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	if !s.handed.Load() {
		errs = append(errs, s.leaveSessions())
	}
	return errors.Join(errs...)
}

// leaveSessions lets the local master know the keys that its minions have, when it will be in front of them by itself after its next start
// (saltclusterctl leave): else each would have to sign in once more.
func (s *service) leaveSessions() error {
	was := s.m.d.master
	now, err := localmaster.LoadConfig(was.Path, was.Version)
	if err != nil || !onLoopback(was) || onLoopback(now) {
		return nil //nolint:nilerr // a master does not start with such a configuration
	}
	return s.sessions.Leave()
}

func onLoopback(c *localmaster.Config) bool {
	addr, ok := c.InterfaceAddr()
	return ok && addr.IsLoopback()
}

// whenServing answers peers "starting" until this node serves.
func (s *service) whenServing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.serving.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// complain returns a function that logs a failure of a background duty.
func (s *service) complain(message string) func(error) {
	return func(err error) { s.m.log.Error(message, "err", err) }
}

// authEvent fires what a stock master fires for a sign-in it accepts (salt/channel/server.py _auth).
func (s *service) authEvent(id, pub string) {
	if !s.m.d.master.Bool("auth_events") {
		return
	}
	err := s.bus.FireAuth(s.ctx, localmaster.AuthEvent{Result: true, Act: "accept", ID: id, Pub: pub})
	if err != nil {
		s.m.log.Warn("event not fired", "minion", id, "err", err)
	}
}

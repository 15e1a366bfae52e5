package daemon

import (
	"context"
	"path/filepath"
	"time"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/keydir"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/trace"
	"saltclusterd/sidecar/upstream"
	"saltclusterd/sidecar/zmtp"
)

// waitersOf is how many of its workers one minion may have wait for others: half of them. One that waits for a job of
// its own, which again has one wait, ends with two.
func waitersOf(workers int) int { return max(1, workers/2) }

// buildMaster makes what talks to the local master, and the key directory.
func (s *service) buildMaster() error {
	d, cfg := s.m.d, s.m.d.cfg
	s.req = upstream.NewReqClient(upstream.ReqConfig{
		Addr: d.master.ReqAddr(), MaxConns: cfg.Salt.UpstreamConnections, Timeout: cfg.Salt.ForwardTimeout,
		PerSender: cfg.Edge.MinionRequestsAtOnce, PerWaiter: waitersOf(d.master.Workers()), Workers: d.master.Workers(),
		Heartbeat: masterlink.Heartbeat, HeartbeatTimeout: masterlink.HeartbeatTimeout, Probe: masterlink.Probe(),
		StuckAfter: cfg.Salt.StuckAfter,
		BusyAtMost: sidecar.LongTimeout(cfg.Salt.ForwardTimeout),
		OnUp:       s.masterUp, Logger: d.log, Registerer: d.reg,
	})
	s.bus = localmaster.NewBus(d.master, localmaster.BusOptions{
		FireOnly: len(cfg.Events.Mirror) == 0, Serving: func(ctx context.Context) { s.watch.AwaitServing(ctx) },
		Logger: d.log, Registerer: d.reg,
	})
	s.watch = s.newMasterWatch()
	s.hidden = localmaster.NewHidden(d.master, localmaster.HiddenOptions{
		ID: s.hiddenID(), KeyDir: filepath.Join(cfg.Paths.StateDir, "hidden"), Requester: s.req,
		Place: d.keyStore().PlaceHidden, Logger: d.log,
	})
	so, err := localmaster.SessionsOf(d.master)
	if err != nil {
		return err
	}
	so.Logger = d.log
	s.sessions = localmaster.NewSessions(so)
	s.sub = upstream.NewSubClient(upstream.SubConfig{
		Addr: d.master.PubAddr(), OnMessage: func(parts [][]byte) { s.intake.Message(s.ctx, parts) },
		Heartbeat: masterlink.Heartbeat, HeartbeatTimeout: masterlink.HeartbeatTimeout,
		OnConnect: s.masterBack, Logger: d.log, Registerer: d.reg,
	})
	s.dir, err = keydir.New(keydir.Config{
		PKIDir: d.master.PkiDir, StateDir: membership.KeyDir(cfg.Paths.StateDir), Node: d.id,
		Log: keyLog{s.m.Consensus}, Founder: s.m.Record.Founder, Current: s.m.Consensus.CaughtUp, Shared: s.turns(),
		Store:     d.keyStore().Geometry(),
		MaxLosses: cfg.SignIn.KeysMaxDelete, HoldAll: d.inspector.TakesKeys, Logger: d.log, Registerer: d.reg,
	})
	return err
}

// buildEdges makes 4505 and 4506.
func (s *service) buildEdges() (err error) {
	d, cfg := s.m.d, s.m.d.cfg
	pub, req := cfg.EdgeAddresses(localAddrs())
	e := cfg.Edge
	var transports []edge.Transport
	for _, name := range e.Transports {
		if t, ok := edge.TransportNamed(name); ok {
			transports = append(transports, t)
		}
	}
	s.pub, err = edge.NewPubEdge(edge.PubConfig{
		Addrs: pub, Proxies: e.Proxies(), MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		QueueMessages: e.PubQueueMessages, QueueBytes: int64(e.PubQueueBytes), HandshakeTimeout: e.HandshakeTimeout,
		Heartbeat: e.Heartbeat, HeartbeatTimeout: e.HeartbeatTimeout, Transports: transports,
		Identify: func(said []byte) (string, bool) { return s.proxy.IdentifySubscriber(said) },
		Targeted: func() bool { return !d.master.Bool("order_masters") },
		Listen:   d.sockets.ListenBare, Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return err
	}
	s.reqs, err = edge.NewReqEdge(edge.ReqConfig{
		Addrs: req, Proxies: e.Proxies(), Limits: zmtp.Limits{MaxFrame: int64(e.MaxRequestSize),
			MaxMessage: int64(e.MaxRequestSize)},
		MaxConns: e.MaxConnections, MaxConnsPerAddr: e.MaxConnectionsPerAddress,
		MaxInFlight: e.MaxInFlight, MaxInFlightPerConn: e.MaxInFlightPerConnection, MaxMemory: int64(e.MaxRequestMemory),
		MaxUnread:        int64(e.MaxRequestMemory),
		HandshakeTimeout: e.HandshakeTimeout, Transports: transports,
		Handler: edgeHandler{s}, Listen: d.sockets.ListenBare, Logger: d.log, Registerer: d.reg,
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
	s.buildPublishing()
	s.keys = &keyView{m: m, settled: s.keysSettled, synced: s.keysSynced, seeds: epochs.NewSeeds(time.Now)}
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
	if s.roots, err = s.newRoots(); err != nil {
		return err
	}
	if s.cache, err = s.newJobs(); err != nil {
		return err
	}
	s.relay = relay.NewClient(m.Port.HTTPClient())
	s.epochs = epochs.New(m.key, time.Now, func(id string, n uint64) { s.hub.AnnounceSignIn(id, n) })
	s.followed = s.newFollowedOptions()
	if err := s.followed.Use(d.master); err != nil {
		return err
	}
	s.said = saltlog.New(d.log, func() bool { return s.followed.Load().Informs })
	operations, err := m.operations()
	if err != nil {
		return err
	}
	s.signin = signin.New(signin.Config{
		Identity: operations, PubSigner: s.followed.PubSigner, PublishPort: d.cfg.Edge.PublishPort, Epochs: s.epochs,
		Keys:   s.keys,
		Master: s.req, Way: s.wayOfSignIn, Peers: s.relay, Sessions: s.sessions, AskAll: s.followed.AskAll,
		Event: s.authEvent, Pinned: m.identity.RecordPin,
		SignedIn: func(id string, token []byte) bool { return s.hub.SignedIn(id, token) },
		Share:    float64(d.cfg.SignIn.CPUPercent) / 100, Newcomers: s.newcomers(), Logger: d.log, Registerer: d.reg,
	})
	s.hub = fanout.New(fanout.Config{
		Self: d.id, Edge: s.pub, Epochs: s.epochs, Signer: operations, Algorithm: s.followed.Algorithm, Clock: s.clock,
		HTTP: m.Port.HTTPClient(), From: peer.FromContext, JobSeen: s.known.Record, SignedIn: s.epochs.Given,
		Hold:     func() { s.rotation.AwaitRotation(s.ctx) },
		Withhold: func() bool { return m.Consensus.Behind() >= sidecar.BehindTolerated },
		Away:     func(id node.ID) bool { return !m.Gossip.Alive(id) },
		Minority: func() bool { return !m.Consensus.Status().HasQuorum },
		NotLate:  func() bool { return !d.cfg.Edge.LateJobs || d.master.Bool("order_masters") },
		Logger:   d.log, Registerer: d.reg,
	})
	s.rotation = rotation.NewEpochs(rotation.EpochsConfig{
		View: m.Consensus.View, Manager: s.epochs, Seeds: s.keys.seeds, Publisher: s.pub, SignIns: s.signin,
		Nudge:        s.hub.Nudge,
		RotateWindow: d.cfg.Edge.RotateWindow, Logger: d.log,
	})
	s.intake = sidecar.NewIntake(sidecar.IntakeConfig{
		SignIn: s.hidden, ClusterPub: m.public, Deliver: s.publisher.Publish, Logger: d.log,
	})
	s.local = s.newLocalMaster()
	if s.native, err = s.newNative(); err != nil {
		return err
	}
	if err := s.buildEvents(); err != nil {
		return err
	}
	s.trace = trace.New(trace.Config{
		Endpoint: d.cfg.Health.TraceEndpoint, OneIn: d.cfg.Health.TraceOneIn, IDs: d.cfg.Health.TraceIDs,
		Node: string(d.id), Cluster: d.cfg.Cluster.ID, Version: d.version, Logger: d.log, Registerer: d.reg,
	})
	s.heard = eventlog.New()
	s.proxy = sidecar.NewProxy(sidecar.Config{
		Guard: s.buildGuard(), View: m.Routes, SignIn: s.signin, Keys: s.keys, Master: s.req, Sessions: s.sessions,
		Relay: s.relay, Epochs: s.epochs, Returns: s.native.Returns, WholeJob: s.known.FindWhole,
		Events: s.native.Events, Files: native.ServedFiles{Service: s.native},
		Mines: native.ServedMines{Service: s.native}, Heard: s.heard, PillarCache: d.master.Bool("pillar_cache"),
		MasterAES: s.intake.MasterAES,
		Done:      s.carriedOut, Trace: s.trace,
		ForwardTimeout: d.cfg.Salt.ForwardTimeout, Logger: d.log, Registerer: d.reg,
	})
	return nil
}

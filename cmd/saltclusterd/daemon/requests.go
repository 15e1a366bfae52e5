package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/trace"
	"saltclusterd/sidecar/wall"
)

// buildRequests makes the way of a request.
func (s *service) buildRequests() (err error) {
	d, m := s.m.d, s.m
	if err := s.buildEvents(); err != nil {
		return err
	}
	if s.native, err = s.newNative(); err != nil { // it has the job cache open: nothing after it fails
		return err
	}
	s.trace = trace.New(trace.Config{
		Endpoint: d.cfg.Health.TraceEndpoint, OneIn: d.cfg.Health.TraceOneIn, IDs: d.cfg.Health.TraceIDs,
		Node: string(d.id), Cluster: d.cfg.Cluster.ID, Version: d.version, Logger: d.log, Registerer: d.reg,
	})
	s.proxy = sidecar.NewProxy(sidecar.Config{
		Guard: s.newGuard(), View: m.Routes, SignIn: s.signin, Keys: s.keys, Master: s.master.Requests,
		Sessions: s.master.Sessions, Relay: s.relay, Epochs: s.epochs, Returns: s.native.Returns,
		WholeJob: s.jobs.Known.FindWhole, Events: s.native.Events, Files: native.ServedFiles{Service: s.native},
		Mines: native.ServedMines{Service: s.native}, Heard: s.handled, PillarCache: d.master.Bool("pillar_cache"),
		MasterAES: s.master.Intake.MasterAES, Done: s.stores.NotifyAnswered, Trace: s.trace,
		ForwardTimeout: d.cfg.Salt.ForwardTimeout, WithoutAES: s.master.Followed.WithoutAES, Logger: d.log, Registerer: d.reg,
	})
	return nil
}

// newNative makes what answers requests of minions without the local master.
func (s *service) newNative() (*native.Service, error) {
	m, d := s.m, s.m.d
	peers := native.NewPeers(native.PeersConfig{
		Self: d.id, Log: m.Consensus, Routes: m.Routes, Replicas: m.JobReplicas, Client: m.Client(),
		Reachable: m.IsServing, Masters: m.Ring,
	})
	return native.New(native.Config{
		Master: d.master, NativeReturns: d.cfg.Salt.NativeReturns, NativeFiles: d.cfg.Salt.NativeFiles != config.FilesOff,
		Returns: returns.Config{
			Self: d.id, Dir: filepath.Join(d.cfg.Paths.StateDir, "returns"), MaxBytes: int64(d.cfg.Salt.SpoolSize),
			Bus: s.master.Bus, Peers: peers, Python: returns.Python{
				Up: s.local.Serves, Return: func(ctx context.Context, minion string, load []byte) error {
					return s.proxy.Return(ctx, minion, load)
				},
			},
			Ahead:         s.stores.ReplicatesJobs(),
			KeepForPython: func() bool { return s.master.Followed.TTL() <= 0 },
			Published:     s.jobs.Table.Seen, Contested: s.jobs.Table.Contested,
		},
		JobCache: jobcache.Config{
			Umask: s.master.Umask.Mask, Keys: s.keys, IDSuffix: fmt.Sprintf("_%d", xxhash.Sum64String(string(d.id))%1e9), Stored: s.stores.NotifyReturnStored,
			Log: s.master.Log,
		},
		MineStore: s.stores.Mines, MineKeys: s.keys, MineSettle: replication.MineSettle,
		FilesCurrent:  func() bool { return !s.share.Hangs() && !d.migration.MasterOutdated() },
		MinesCurrent:  func() bool { return !d.migration.MasterOutdated() },
		MasterProblem: func(context.Context) string { return s.local.Problem() }, Logger: d.log, Registerer: d.reg,
	})
}

// buildEvents makes what says where events of minions fire, and what shows them on other masters' buses.
func (s *service) buildEvents() (err error) {
	d := s.m.d
	s.handled = eventlog.New()
	var rules []router.EventRule
	for _, r := range d.cfg.Events.Policy {
		rules = append(rules, router.EventRule{Tag: r.Tag, Route: r.Policy})
	}
	if s.events, err = router.NewEventRules(rules); err != nil {
		return err
	}
	s.mirror, err = mirror.New(mirror.Config{
		Tags: d.cfg.Events.Mirror, Bus: s.master.Bus, Members: s.m.OtherMasters,
		Send: func(ctx context.Context, to node.ID, batch []byte) error {
			_, err := s.m.Call(ctx, http.MethodPost, to, mirror.Path, batch, mirror.MaxAnswer)
			return err
		},
		Logger: d.log, Registerer: d.reg,
	})
	return err
}

// newGuard makes what judges requests before they go anywhere.
func (s *service) newGuard() *guard.Guard {
	d, e := s.m.d, s.m.d.cfg.Edge
	accepted := func(id string) bool {
		_, ok := s.keys.Accepted(id)
		return ok || s.jobs.Known.IsMaster(id)
	}
	s.wall = wall.New(wall.Config{
		Modes: masterlink.WallModes(e.Wall), Policy: masterlink.WallPolicy(d.master),
		Rate: int64(e.MinionRequestRate), Bytes: int64(e.MinionRequestBytes), Answers: int64(e.MinionAnswerBytes),
		Accepted: accepted, Job: s.jobs.Known.Know, Own: s.jobs.Known.IsOwn, Registerer: d.reg,
	})
	return guard.New(guard.Config{
		MinVersion: e.RequestMinimumVersion, AllowClear: e.AllowClearCommands, Wall: s.wall,
		Known: func(pub string) bool { return s.signin.Parsed(pub) },
		TTL:   s.master.Followed.TTL, Logger: d.log, Registerer: d.reg,
	})
}

package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/wall"
)

// newInspector returns what inspects the master's configuration, which is read later.
func (d *Daemon) newInspector() *masterlink.Inspector {
	return masterlink.NewInspector(masterlink.InspectorConfig{
		Master: func() *localmaster.Config { return d.master }, Shared: d.shares(), EveryMaster: d.cfg.Events.EveryMaster,
		CompareRoots: d.cfg.Roots.Sync != config.RootsOff && !d.shares(), Logger: d.log,
	})
}

// ownProblems compares what the masters have for themselves.
func ownProblems(stats map[node.ID]nodeStats) []adminapi.Problem {
	masters := make(map[string]localmaster.Own, len(stats))
	for id, s := range stats {
		masters[string(id)] = s.Own
	}
	return masterlink.OwnProblems(masters)
}

// keyStore returns the key store of the master's own.
func (d *Daemon) keyStore() masterlink.KeyStore {
	return masterlink.KeyStore{Master: d.master, Shared: d.shares()}
}

func (d *Daemon) bank(name string) *mmapkeys.Bank { return d.keyStore().Bank(name) }

// checkKeyStore is the health check of the key store of the master's own.
func (s *service) checkKeyStore(context.Context) health.Result {
	return s.m.d.keyStore().Check(s.dir.Store())
}

// newMasterWatch returns what follows restarts of the master. The bus is made before, the returns later.
func (s *service) newMasterWatch() *masterlink.Watch {
	d := s.m.d
	return masterlink.NewWatch(masterlink.WatchConfig{
		Master: d.master, Command: d.cfg.Salt.MasterCommand, Bus: s.bus, Workers: s.req,
		Unfired: func() uint64 { return s.native.Returns.Unfired() },
		Upgrade: func(ctx context.Context, p admin.Progress) error {
			_, err := d.Upgrade(ctx, adminapi.UpgradeRequest{}, p)
			return err
		},
		Changed: func() { d.checks.Kick("version") }, Logger: d.log,
	})
}

// newFollowedOptions returns the master's options that are followed.
func (s *service) newFollowedOptions() *masterlink.FollowedOptions {
	d := s.m.d
	return masterlink.NewFollowedOptions(masterlink.FollowedConfig{
		Master: d.master, Path: d.cfg.Salt.Config, Public: s.m.public, ReadKey: d.masterKeys().ReadFile,
		Latest: d.inspector.UseLatest, Changed: func() { d.checks.Kick("options") }, Logger: d.log,
	})
}

func readPubSigner(d *Daemon, master *localmaster.Config, public string) (signin.PubSigner, error) {
	return masterlink.ReadPubSigner(d.masterKeys().ReadFile, master, public)
}

// followedMaster returns the local master's configuration as the master has read it: the one of saltclusterd's start
// until another one was read.
func (m *member) followedMaster() *localmaster.Config {
	if m.svc != nil {
		if now := m.svc.followed.Load(); now != nil {
			return now.From
		}
	}
	return m.d.master
}

// pusher returns a function that names the minion, of those that the cluster knows, that has pushed the file of a path
// (router.View.Pusher).
func (m *member) pusher() func(path string) string {
	now := m.svc.followed.Load()
	if now == nil || !now.ServesPushed() {
		return nil
	}
	return func(path string) string {
		id := now.PushedBy(path)
		if _, known := m.Consensus.View().Key(id); !known {
			return ""
		}
		return id
	}
}

// buildGuard makes what judges requests before they go anywhere.
func (s *service) buildGuard() *guard.Guard {
	d, e := s.m.d, s.m.d.cfg.Edge
	accepted := func(id string) bool {
		_, ok := s.keys.Accepted(id)
		return ok || s.known.IsMaster(id)
	}
	s.wall = wall.New(wall.Config{
		Modes: masterlink.WallModes(e.Wall), Policy: masterlink.WallPolicy(d.master),
		Rate: int64(e.MinionRequestRate), Bytes: int64(e.MinionRequestBytes), Answers: int64(e.MinionAnswerBytes),
		Accepted: accepted, Job: s.known.Know, Own: s.known.IsOwn, Registerer: d.reg,
	})
	return guard.New(guard.Config{
		MinVersion: e.RequestMinimumVersion, AllowClear: e.AllowClearCommands, Wall: s.wall,
		Known: func(pub string) bool { return s.signin.Parsed(pub) },
		TTL:   s.followed.TTL, Logger: d.log, Registerer: d.reg,
	})
}

// wallVerbs returns what operators ask about the rules for requests.
func (d *Daemon) wallVerbs() masterlink.WallVerbs {
	return masterlink.WallVerbs{
		Self: string(d.id),
		Of: func() (*wall.Wall, error) {
			s, err := d.service()
			if err != nil {
				return nil, err
			}
			return s.wall, nil
		},
		List: func(ctx context.Context) (adminapi.Protocols, error) {
			s, err := d.service()
			if err != nil {
				return adminapi.Protocols{}, err
			}
			return s.m.minions.Protocols(ctx), nil
		},
	}
}

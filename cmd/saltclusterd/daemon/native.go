package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/ring"
)

// newNative makes what answers requests of minions without the local master.
func (s *service) newNative() (*native.Service, error) {
	d := s.m.d
	return native.New(native.Config{
		Master: d.master, NativeReturns: d.cfg.Salt.NativeReturns, NativeFiles: d.cfg.Salt.NativeFiles != config.FilesOff,
		Returns: returns.Config{
			Self: d.id, Dir: filepath.Join(d.cfg.Paths.StateDir, "returns"), MaxBytes: int64(d.cfg.Salt.SpoolSize),
			Bus: s.bus, Python: lateProxy{s}, Peers: s.m.returnPeers(), Ahead: s.jobsOff() == "",
			KeepForPython: func() bool { return s.followed.TTL() <= 0 },
			Published:     s.jobs.Seen, Contested: s.jobs.Contested,
		},
		JobCache: jobcache.Config{
			Umask: s.umask.Mask, Keys: s.keys, IDSuffix: idSuffix(d.id), Stored: s.returnStored, Log: s.said,
		},
		MineStore: s.mines, MineKeys: s.keys, MineSettle: mineSettle,
		FilesCurrent:  func() bool { return !s.share.Hangs() && !d.migration.MasterOutdated() },
		MinesCurrent:  func() bool { return !d.migration.MasterOutdated() },
		MasterProblem: s.masterProblem, Logger: d.log, Registerer: d.reg,
	})
}

// returnPeers returns the other nodes as the returns' service sees them.
func (m *member) returnPeers() native.Peers {
	return native.NewPeers(native.PeersConfig{
		Self: m.d.id, Log: m.Consensus, Routes: m.Routes, Replicas: m.jobReplicas, Client: m.Client(),
		Reachable: func(id node.ID) bool {
			g, ok := m.Gossip.Member(id)
			return ok && g.State == gossip.Alive && g.Meta.Ready
		},
		Masters: func() []ring.Node { return m.ringOf(m.Consensus.View()) },
	})
}

// idSuffix ends the ids of jobs that this node makes.
func idSuffix(id node.ID) string { return fmt.Sprintf("_%d", xxhash.Sum64String(string(id))%1e9) }

// lateProxy is the proxy, which is made after the returns' service (returns.Python).
type lateProxy struct{ s *service }

// Up implements returns.Python.
func (p lateProxy) Up() bool { return p.s.masterServes() }

// Return implements returns.Python.
func (p lateProxy) Return(ctx context.Context, minion string, load []byte) error {
	return p.s.proxy.Return(ctx, minion, load)
}

// rereadOptions follows the master's configuration, which the master reads when it starts. Options that cannot be
// followed leave everything as it was. When they cannot be read the master itself answers.
func (s *service) rereadOptions() {
	switch now, err := s.followed.Reread(); {
	case now == nil:
		s.native.LeaveToMaster(err)
	case err == nil:
		s.cache.SetKeep(masterlink.KeepJobs(now))
		s.wall.Use(masterlink.WallPolicy(now))
		s.native.Use(now)
	}
}

// takesReturns is what this node tells the others.
func (s *service) takesReturns() bool {
	ok, _ := s.native.Returns.Native("_return")
	return ok && s.serving.Load()
}

// checkReturns is the health check of returns, once minions are served.
func (s *service) checkReturns(ctx context.Context) health.Result {
	if !s.opened.Load() {
		return fine
	}
	return s.native.CheckReturns(ctx)
}

// returnVerbs returns what operators ask about returns that the master does not answer.
func (d *Daemon) returnVerbs() native.Verbs {
	return native.Verbs{Self: string(d.id), Of: func() (*native.Service, error) {
		s, err := d.service()
		if err != nil {
			return nil, err
		}
		return s.native, nil
	}}
}

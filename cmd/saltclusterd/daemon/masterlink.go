package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// newMasterLink makes the connections to the local master. What they notify is made later.
func (s *service) newMasterLink() (*masterlink.Link, error) {
	m, d := s.m, s.m.d
	return masterlink.NewLink(s.ctx, masterlink.LinkConfig{
		Options: d.cfg, Master: d.master, KeyStore: d.keyStore(), HiddenID: s.hiddenID(), Public: m.public,
		ReadKey: d.masterKeys().ReadFile,
		Deliver: func(p fanout.Publication) error { return s.publisher.Publish(p) },
		Unfired: func() uint64 { return s.native.Returns.Unfired() },
		Upgrade: d.renew,
		Latest:  d.inspector.UseLatest, Reread: s.followOptions,
		VersionChanged: func() { d.checks.Kick("version") }, OptionsChanged: func() { d.checks.Kick("options") },
		Restarted: func() {
			s.native.Returns.MasterStarted()
			s.proxy.NotifyMasters()
		},
		Connected: func() { s.missed.NotifyConnected() },
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

func (s *service) checkKeyStore(context.Context) health.Result {
	return s.m.d.keyStore().Check(s.dir.Store())
}

package daemon

import (
	"context"
	"path/filepath"
	"time"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/publishing"
	"saltclusterd/durable"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/missedjobs"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// buildPublications makes what publishes jobs of the local master and what has those of all masters. What they notify
// is made later.
func (s *service) buildPublications() error {
	d := s.m.d
	s.running = drain.NewRunningJobs(publishing.Timeout(d.master), func(jid string) (got, want int) {
		return publishing.CountReturns(d.master, jid)
	})
	s.jobs = router.NewJobs(0)
	s.missed = missedjobs.New(missedjobs.Config{
		Ledger:   missedjobs.NewLedger(filepath.Join(d.cfg.Paths.RunDir, "seen-jobs"), durable.BootID(), time.Now),
		CacheDir: d.master.CacheDir, Major: d.master.Version.Major, MasterID: d.master.Text("master_id"),
		UTC: d.master.Bool("utc_jid"), Content: publishing.HashContent, Released: s.handed.Load,
		Off: func() string {
			return publishing.MissedOff(d.master, d.shares(), d.cfg.Edge.LateJobs, s.wall.Mode(wall.SyndicReturns))
		},
		Patience: func() time.Duration { return min(publishing.Timeout(d.master), fanout.MaxAge) },
		Publish:  func(plain []byte) error { return s.publisher.PublishMissed(plain) },
		Now:      time.Now, Logger: d.log, Registerer: d.reg,
	})
	s.publisher = publishing.NewPublisher(publishing.Config{
		Republished: s.missed.Republished,
		Notify: []func(saltwire.PubPeek, []byte){
			s.running.Add,
			func(peek saltwire.PubPeek, _ []byte) {
				s.stores.Jobs.Published(peek.JID)
				s.master.Umask.NotifyPublished(peek.JID)
			},
		},
		Send: func(p fanout.Publication) error { return s.hub.Local(p) }, Logger: d.log,
	})
	s.known = publishing.NewKnownJobs(publishing.KnownConfig{
		Self: d.id, Master: d.master, View: s.m.Consensus.View, Table: s.jobs, Since: time.Now(), Seen: s.missed.Seen,
		Cached: func(jid string) (string, bool) { return s.stores.Jobs.Whole(jid) }, Logger: d.log,
	})
	return nil
}

// checkJobIDs is the health check of ids that two masters gave to different jobs.
func (s *service) checkJobIDs(context.Context) health.Result { return s.known.Check() }

package daemon

import (
	"fmt"
	"time"

	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/saltwire"
)

// publish hands a publication of the local master on, unless that was done when it was long overdue.
func (s *service) publish(p fanout.Publication) error {
	peek, err := saltwire.PeekPub(p.Plain)
	if err == nil && s.missed.Republished(peek.JID, p.Plain) {
		s.m.d.log.Info("publication of the salt-master came long after it was saved, and had been taken from its job cache",
			"jid", peek.JID)
		return nil
	}
	if err == nil && peek.JID != "" && !p.TopicOnly { // not for further copies of one publication
		s.notePublished(peek, p.Plain)
	}
	return s.hub.Local(p)
}

// notePublished tells who wants to know of a job of the local master's.
func (s *service) notePublished(peek saltwire.PubPeek, plain []byte) {
	s.published.Add(peek, plain)
	s.cache.Published(peek.JID)
	s.umask.NotifyPublished(peek.JID)
}

// publishMissed publishes a job that the local master has published while nobody listened.
func (s *service) publishMissed(plain []byte) error {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		return fmt.Errorf("read job from the job cache: %w", err)
	}
	s.notePublished(peek, plain)
	return s.hub.Local(fanout.Publication{Plain: plain})
}

// jobPatience is how long the master's command line waits before it asks for its job (again).
func (s *service) jobPatience() time.Duration {
	master := s.m.d.master
	return time.Duration(master.Int("timeout")+master.Int("gather_job_timeout")) * time.Second
}

// jobProgress looks into the master's job cache.
func (s *service) jobProgress(jid string) (got, want int) {
	return jobcache.Progress(s.m.d.master.CacheDir, s.m.d.master.Text("hash_type"), jid)
}

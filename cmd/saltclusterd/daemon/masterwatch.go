package daemon

import (
	"context"
	"time"

	"saltclusterd/backoff"
)

// masterBack notes that the local master publishes again: it may have been started.
func (s *service) masterBack() {
	s.masterUp()
	s.missed.NotifyConnected()
	s.watch.NotifyStarted()
}

// masterUp notes that the local master has (re)appeared, or has resumed after it stood still. It may be another
// process, with a new AES key and workers that have forgotten all sessions.
func (s *service) masterUp() {
	s.sessions.Reset()
	s.umask.NotifyStarted()
	s.native.Returns.MasterStarted()
	s.proxy.NotifyMasters()
	select {
	case s.learn <- struct{}{}:
	default:
	}
}

// learnRetry is the pause after a sign-in at the local master that failed.
const learnRetry = 2 * time.Second

// keepLearning learns the local master's key whenever it may have changed, so that the first publication does not wait.
func (s *service) keepLearning(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.learn:
		}
		s.rereadOptions()
		for s.req.Up() {
			err := s.intake.Learn(ctx)
			s.m.Gossip.UpdateMeta()
			s.m.RequestRoutes()
			if err == nil {
				said = ""
				s.m.log.Info("signed in at the local master")
				break
			}
			if text := err.Error(); text != said { // it may need an operator, and is tried every two seconds
				said = text
				s.m.log.Warn("not signed in at the local master", "err", err)
			}
			if !backoff.Sleep(ctx, learnRetry) {
				return
			}
		}
	}
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"saltclusterd/sidecar/localmaster"
)

// Open waits until this node has caught up, then opens everything, the edges last.
func (s *service) Open(ctx context.Context) error {
	s.step.Store("catching up with the cluster")
	if err := s.alone.AwaitCluster(ctx); err != nil {
		return err
	}
	s.keepClock()
	if err := s.beginEpoch(s.m.Consensus.View()); err != nil {
		return err
	}
	if err := s.openParts(ctx, s.parts(), func(p listed) bool { return !s.isEdge(p) }); err != nil {
		return err
	}
	s.m.minions.ReadProtocols()
	startDuties(s.ctx, &s.wg, s.duties(), partsOpen, false)
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

// openEdges opens 4505 and 4506. A port that is taken is tried again: the master may not have moved to loopback yet.
func (s *service) openEdges(ctx context.Context) error {
	s.serving.Store(true)
	s.m.Gossip.UpdateMeta()
	drained := func() { s.step.Store("this node is drained (saltclusterctl undrain " + string(s.m.d.id) + ")") }
	if err := s.drain.AwaitUndrained(ctx, drained); err != nil {
		return err
	}
	s.step.Store("opening 4505 and 4506")
	held := func() {
		s.held.Store(true)
		s.step.Store("another process has them, the salt-master as a rule")
	}
	if err := retryListen(ctx, s.m.log, s.pub.Open, held); err != nil {
		return err
	}
	s.open.add(s.pub)
	if err := retryListen(ctx, s.m.log, s.reqs.Open, held); err != nil {
		return err
	}
	s.open.add(s.reqs)
	s.held.Store(false)
	s.opened.Store(true)
	startDuties(s.ctx, &s.wg, s.duties(), edgesOpen, false)
	s.settled.Store(true)
	s.migration.Resume()
	s.m.log.Info("serving minions", "node", s.m.d.id)
	return nil
}

// watchEdges ends the daemon when an edge has ended on its own: a node that minions cannot reach must not look healthy.
func (s *service) watchEdges(ctx context.Context) {
	select {
	case <-ctx.Done():
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
	case s.handed.Load(): // another process serves now
	case s.opened.Swap(false):
		s.drain.DrainForStop(s.m.patience())
	default:
		s.m.leadership.Resign(s.m.patience())
	}
	s.serving.Store(false)
	s.late.open.Store(false)
	errs := []error{s.closeParts(s.parts())}
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	if !s.handed.Load() {
		errs = append(errs, s.leaveSessions())
	}
	return errors.Join(errs...)
}

// leaveSessions lets the local master know the keys that its minions have, when minions will reach it directly after
// its next start (saltclusterctl leave). Otherwise each of them would have to sign in once more.
func (s *service) leaveSessions() error {
	was := s.m.d.master
	now, err := localmaster.LoadConfig(was.Path, was.Version)
	if err != nil {
		return nil //nolint:nilerr // a master does not start with such a configuration
	}
	before, ok := was.InterfaceAddr()
	after, ok2 := now.InterfaceAddr()
	if !ok || !ok2 || !before.IsLoopback() || after.IsLoopback() {
		return nil
	}
	return s.sessions.Leave()
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

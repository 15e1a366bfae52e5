package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/fsync/catchup"
)

// Open waits until this node has caught up, then opens everything, the edges last.
func (s *service) Open(ctx context.Context) error {
	s.waitFor("catching up with the cluster")
	if err := s.alone.AwaitCluster(ctx); err != nil {
		return err
	}
	s.keepSerials()
	if err := s.rotation.Begin(s.m.Consensus.View()); err != nil {
		return err
	}
	if err := s.parts.Open(ctx, func(p lifecycle.Listed) bool { return !s.isEdge(p) }); err != nil {
		return err
	}
	s.m.minions.ReadProtocols()
	s.duties().Start(s.ctx, &s.wg, lifecycle.PartsOpen, lifecycle.ColdStart)
	s.stores.SetAnswering(true)
	if err := s.catchUp(ctx); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	return s.openEdges(ctx)
}

// catchUp brings all parts up to what the cluster has, as far as that can be had.
func (s *service) catchUp(ctx context.Context) error {
	if s.alone.Serving() {
		s.stores.SkipCatchUp()
		return nil
	}
	return s.stores.CatchUp(ctx,
		catchup.Part{Name: replication.PartKeys, Await: s.keys.AwaitFiles, Needed: true},
		catchup.Part{Name: replication.PartRoots, Await: s.roots.Await, Off: s.roots.Off()})
}

// keepSerials keeps the floor of the clock of serials on disk until stopSerials.
func (s *service) keepSerials() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		s.serials.KeepReserved(ctx, membership.ClockPath(s.m.d.cfg.Paths.StateDir), func(err error) {
			s.m.log.Error("clock floor not stored", "err", err)
		})
	})
	s.stopSerials = func() {
		cancel()
		<-done
	}
}

// openEdges opens 4505 and 4506. A port that is taken is tried again: the master may not have moved to loopback yet.
func (s *service) openEdges(ctx context.Context) error {
	s.serving.Store(true)
	s.m.Gossip.UpdateMeta()
	drained := func() { s.waitFor("this node is drained (saltclusterctl undrain " + string(s.m.d.id) + ")") }
	if err := s.drain.AwaitUndrained(ctx, drained); err != nil {
		return err
	}
	s.waitFor("opening 4505 and 4506")
	held := func() { s.waitFor("another process has them, the salt-master as a rule") }
	err := s.parts.OpenBy(ctx, s.isEdge, func(ctx context.Context, edge lifecycle.Part) error {
		return s.ports.AwaitFree(ctx, edge.Open, held)
	})
	if err != nil {
		return err
	}
	s.opened.Store(true)
	s.duties().Start(s.ctx, &s.wg, lifecycle.EdgesOpen, lifecycle.ColdStart)
	s.settled.Store(true)
	s.migration.Resume()
	s.m.log.Info("serving minions", "node", s.m.d.id)
	return nil
}

// waitFor notes what Open waits for.
func (s *service) waitFor(step string) { s.step.Store(step) }

// waitsFor returns what still has to happen before minions are served; empty when they are.
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
	s.stores.SetAnswering(false)
	err := s.parts.Close()
	s.cancel()
	s.wg.Wait()
	if !s.handed.Load() {
		err = errors.Join(err, s.master.LeaveSessions())
	}
	return err
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

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/fsync/catchup"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

// Open waits until this node has caught up, then opens everything, the edges last.
func (s *service) Open(ctx context.Context) error {
	s.WaitFor("catching up with the cluster")
	if err := s.alone.AwaitCluster(ctx); err != nil {
		return err
	}
	if err := s.rotation.Begin(s.m.Consensus.View()); err != nil {
		return err
	}
	if err := s.parts.Open(ctx, func(p lifecycle.Listed) bool { return !s.isEdge(p) }); err != nil {
		return err
	}
	s.minions.ReadProtocols()
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

// keepSerials keeps the floor of the clock of serials on disk until ctx ends.
func (s *service) keepSerials(ctx context.Context) {
	s.serials.KeepReserved(ctx, membership.ClockPath(s.m.d.cfg.Paths.StateDir), func(err error) {
		s.m.log.Error("clock floor not stored", "err", err)
	})
}

// openEdges opens 4505 and 4506. A port that is taken is tried again: the master may not have moved to loopback yet.
func (s *service) openEdges(ctx context.Context) error {
	s.Serving.Store(true)
	s.m.Gossip.UpdateMeta()
	drained := func() { s.WaitFor("this node is drained (saltclusterctl undrain " + string(s.m.d.id) + ")") }
	if err := s.drain.AwaitUndrained(ctx, drained); err != nil {
		return err
	}
	s.WaitFor("opening 4505 and 4506")
	held := func() { s.WaitFor("another process has them, usually the salt-master") }
	err := s.parts.OpenBy(ctx, s.isEdge, func(ctx context.Context, edge lifecycle.Part) error {
		return s.ports.AwaitFree(ctx, edge.Open, held)
	})
	if err != nil {
		return err
	}
	s.Opened.Store(true)
	s.duties().Start(s.ctx, &s.wg, lifecycle.EdgesOpen, lifecycle.ColdStart)
	s.Settled.Store(true)
	s.m.d.checks.Kick() // a load balancer that saw this node fail would soon cut the connections that come now
	s.migration.Resume()
	s.m.log.Info("serving minions", "node", s.m.d.id)
	return nil
}

// Close closes what is open, the edges first.
func (s *service) Close() error {
	switch {
	case s.Handed.Load(): // another process serves now
	case s.Opened.Swap(false):
		s.drain.DrainForStop(s.m.gracefulContext())
	default:
		s.m.leadership.Resign(s.m.gracefulContext())
	}
	s.Serving.Store(false)
	s.stores.SetAnswering(false)
	err := s.parts.Close()
	s.cancel()
	s.wg.Wait()
	if !s.Handed.Load() {
		err = errors.Join(err, s.master.LeaveSessions())
	}
	return err
}

// handle routes what the members ask of each other.
func (m *member) handle() {
	mux := peerrpc.NewMux(peer.FromContext)
	m.role.handle(mux)
	m.Handle(mux)
	m.reports.Handle(mux)
	m.leadership.Handle(mux)
	m.certificates.Handle(mux)
	m.rpc.Use(mux)
}

// places is how many requests of one member are worked on at a time, by path. The handler of returns has two for all
// members together; one member that is hostile must leave one.
var places = map[string]int{mirror.Path: 2, returns.Path: 1, operator.LedgerPath: 2}

// handle implements role.
func (s *service) handle(mux *peerrpc.Mux) {
	s.stores.Handle(mux)
	s.roots.Handle(mux)
	s.newLedgers().Handle(mux)
	s.share.Handle(mux)
	s.minions.Handle(mux)
	s.m.identity.Handle(mux)
	s.migration.Handle(mux)
	s.drain.Handle(mux)
	serving := func(h http.Handler) http.Handler { return peerrpc.WhenServing(s.Serving.Load, h) }
	relayed := serving(relay.Handler(s.proxy, peer.FromContext, int64(s.m.d.cfg.Edge.MaxRequestMemory)))
	for _, path := range []string{relay.Path, relay.PathSignIn} {
		mux.Handle(path, relayed)
		mux.Unlimit(path)
	}
	mux.Handle(fanout.Path, serving(s.hub.Handler()))
	mux.Stream(fanout.Path)
	mux.Handle("POST "+mirror.Path, serving(s.mirror.Handler(peer.FromContext)))
	mux.Handle("POST "+returns.Path, serving(s.native.Returns.Handler(peer.FromContext)))
	for path, n := range places {
		mux.Limit(path, n)
	}
}

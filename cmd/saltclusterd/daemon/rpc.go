package daemon

import (
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

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
	s.handleMinions(mux)
	s.stores.Handle(mux)
	s.roots.Handle(mux)
	s.newLedgers().Handle(mux)
	s.share.Handle(mux)
	s.m.minions.Handle(mux)
	s.m.identity.Handle(mux)
	s.migration.Handle(mux)
	s.drain.Handle(mux)
}

// handleMinions adds what nodes hand to each other of their minions and masters.
func (s *service) handleMinions(mux *peerrpc.Mux) {
	relayed := s.whenServing(relay.Handler(s.proxy, peer.FromContext, int64(s.m.d.cfg.Edge.MaxRequestMemory)))
	for _, path := range []string{relay.Path, relay.PathSignIn} {
		mux.Handle(path, relayed)
		mux.Unlimit(path)
	}
	mux.Handle(fanout.Path, s.whenServing(s.hub.Handler()))
	mux.Stream(fanout.Path)
	mux.Handle("POST "+mirror.Path, s.whenServing(s.mirror.Handler(peer.FromContext)))
	mux.Handle("POST "+returns.Path, s.whenServing(s.native.Returns.Handler(peer.FromContext)))
	for path, n := range places {
		mux.Limit(path, n)
	}
}

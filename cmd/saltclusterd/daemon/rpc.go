package daemon

import (
	"context"
	"net/http"
	"sync/atomic"

	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

// rpcSwitch is the peer port's handler before it is known who answers.
type rpcSwitch struct{ h atomic.Pointer[http.Handler] }

func newRPCSwitch() *rpcSwitch { return &rpcSwitch{} }

// ServeHTTP implements http.Handler.
func (s *rpcSwitch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := s.h.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	http.Error(w, "starting", http.StatusServiceUnavailable)
}

// handle routes what the members ask of each other.
func (s *rpcSwitch) handle(m *member) {
	mux := peerrpc.NewMux(peer.FromContext)
	if m.svc != nil {
		m.svc.handleMinions(mux)
		m.svc.handleStores(mux)
		m.svc.roots.Handle(mux)
		m.handleService(mux)
	}
	m.Handle(mux)
	m.reports.Handle(mux)
	m.leadership.Handle(mux)
	m.certificates.Handle(mux)
	h := http.Handler(mux)
	s.h.Store(&h)
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
}

// handleStores adds what the replicated stores tell each other, and limits how much of that is worked on at a time.
// What holds a large body, or takes long, has few places; where all members have some together (bodies of returns: two;
// trees: six; most others: four), one that is hostile must leave one.
func (s *service) handleStores(mux *peerrpc.Mux) {
	mux.Handle("POST "+datacache.Data.Path(), s.whenCaughtUp(partGrains, s.data.Handler()))
	mux.Handle("POST "+tokens.Path, s.whenCaughtUp(partTokens, s.tokens.Handler()))
	mux.Handle("POST "+datacache.Mine.Path(), s.whenCaughtUp(partMines, s.mines.Handler()))
	mux.Handle("POST "+jobs.Path, s.whenCaughtUp(partJobs, s.cache.Handler()))
	for path, places := range storePlaces() {
		mux.Limit(path, places)
	}
}

// storePlaces is how many requests of one member are worked on at a time, by path.
func storePlaces() map[string]int {
	return map[string]int{
		datacache.Data.Path(): 3, datacache.Mine.Path(): 3, jobs.Path: 3, tokens.Path: 2, mirror.Path: 2,
		returns.Path: 1, operator.LedgerPath: 2, pathCatchup: 6,
	}
}

// handleService adds what members ask about the service of another one.
func (m *member) handleService(mux *peerrpc.Mux) {
	mux.Handle("POST "+pathCatchup+"{part}", http.HandlerFunc(m.handleCatchup))
	m.svc.newLedgers().Handle(mux)
	m.svc.share.Handle(mux)
	m.minions.Handle(mux)
	m.identity.Handle(mux)
	m.svc.migration.Handle(mux)
	m.svc.drain.Handle(mux)
}

// stats asks another node how far it is (consensus.Config.Stats).
func (m *member) stats(ctx context.Context, id node.ID) (consensus.PeerStats, error) {
	s, err := m.nodeStats(ctx, id)
	return s.PeerStats, err
}

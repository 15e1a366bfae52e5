package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

// Paths of peer RPC that the daemon itself answers; relay and fanout have their own.
const (
	pathPropose = "/v1/propose"
	pathStats   = "/v1/stats"
)

const (
	maxProposal = consensus.MaxForward
	maxResults  = 16 << 20
	maxStats    = 16 << 10
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

func (s *rpcSwitch) handle(m *member) {
	mux := http.NewServeMux()
	if m.svc != nil {
		relayed := m.svc.whenServing(relay.Handler(m.svc.proxy, peer.FromContext, int64(m.d.cfg.Edge.MaxRequestMemory)))
		mux.Handle(relay.Path, relayed)
		mux.Handle(relay.PathSignIn, relayed)
		mux.Handle(fanout.Path, m.svc.whenServing(m.svc.hub.Handler()))
		mux.Handle("POST "+datacache.Data.Path(), m.svc.whenCaughtUp(partGrains, m.svc.data.Handler()))
		mux.Handle("POST "+tokens.Path, m.svc.whenCaughtUp(partTokens, m.svc.tokens.Handler()))
		mux.Handle("POST "+datacache.Mine.Path(), m.svc.whenCaughtUp(partMines, m.svc.mines.Handler()))
		mux.Handle("POST "+mirror.Path, m.svc.whenServing(m.svc.mirror.Handler(peer.FromContext)))
		mux.Handle("POST "+jobs.Path, m.svc.whenCaughtUp(partJobs, m.svc.cache.Handler()))
		mux.Handle("POST "+returns.Path, m.svc.whenServing(m.svc.returns.Handler(peer.FromContext)))
		mux.HandleFunc("POST "+pathCatchup+"{part}", m.handleCatchup)
		mux.HandleFunc("GET "+pathLedger, m.handleLedger)
		mux.HandleFunc("GET "+pathShare, m.handleShare)
		mux.HandleFunc("GET "+pathSubscribers, m.handleSubscribers)
		mux.HandleFunc("GET "+pathHeard, m.handleHeard)
		mux.HandleFunc("GET "+pathPresence, m.handlePresence)
		mux.HandleFunc("GET "+pathPins, m.handlePins)
		mux.HandleFunc("GET "+pathProtocols, m.handleProtocols)
		mux.HandleFunc("GET "+pathMigrate, m.handleMigration)
		mux.HandleFunc("POST "+pathMigrate, m.handleMigrate)
		mux.HandleFunc("GET "+pathDrain, m.handleDrainReport)
		mux.HandleFunc("POST "+pathDrain, m.handleDrainWishes)
		mux.HandleFunc("POST "+returns.PathLeaving, m.handleLeaving)
		m.svc.handleRoots(mux)
	}
	mux.HandleFunc("POST "+pathPropose, m.handlePropose)
	mux.HandleFunc("GET "+pathStats, m.handleStats)
	mux.HandleFunc("POST "+pathTransfer, m.handleTransfer)
	mux.HandleFunc("POST "+pathCertificate, m.handleCertificate)
	h := bounded(mux)
	s.h.Store(&h)
}

// forward hands a proposal to the leader (consensus.Config.Forward).
func (m *member) forward(ctx context.Context, leader node.ID, req []byte) ([]byte, error) {
	return m.call(ctx, http.MethodPost, leader, pathPropose, req, maxResults)
}

// stats asks another node how far it is (consensus.Config.Stats).
func (m *member) stats(ctx context.Context, id node.ID) (consensus.PeerStats, error) {
	s, err := m.nodeStats(ctx, id)
	return s.PeerStats, err
}

// nodeStats is what a node tells of itself: how far its log is and, as long as it catches up, the rest.
type nodeStats struct {
	consensus.PeerStats
	Sync []adminapi.SyncPart `json:"sync,omitempty"`
	Now  time.Time           `json:"now,omitzero"` // by the clock of its host
	// Serial is the newest serial that it has stamped or seen.
	Serial hlc.Timestamp `json:"serial,omitempty"`
	// Identity is the fingerprint of the cluster's key as this node has it; IdentityShown: its master serves with it after a change.
	Identity      string `json:"identity,omitempty"`
	IdentityShown bool   `json:"identity_shown,omitempty"`
	Unanswered    int    `json:"unanswered,omitempty"` // returns that its master does not answer
	// Reasons are what its health checks say, but not that it is drained, which everybody knows.
	Reasons []adminapi.Reason `json:"reasons,omitempty"`
	// Own is what its master has for itself; nil: it does not say.
	Own localmaster.Own `json:"own,omitempty"`
}

func (m *member) nodeStats(ctx context.Context, id node.ID) (nodeStats, error) {
	var s nodeStats
	body, err := m.call(ctx, http.MethodGet, id, pathStats, nil, maxStats)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("stats of %s: %w", id, err)
	}
	s.Reasons = boundReasons(s.Reasons)
	return s, nil
}

// call makes one RPC to a member.
func (m *member) call(ctx context.Context, method string, to node.ID, path string, body []byte, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, err)
	}
	resp, err := m.port.HTTPClient().Do(req)
	if err != nil {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("call %s of %s: %s: %.200s", path, to, resp.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}

// peerProblem is for operators why a node could not be asked: what the network said, without which of our paths was asked for.
func peerProblem(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	return err.Error()
}

func (m *member) handlePropose(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxProposal))
	if err != nil {
		http.Error(w, "proposal too large", http.StatusRequestEntityTooLarge)
		return
	}
	from, _ := peer.FromContext(r.Context())
	answer, err := m.cons.HandleForward(r.Context(), from, body)
	if err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, consensus.ErrInvalid) {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	_, _ = w.Write(answer)
}

func (m *member) localStats() nodeStats {
	s := nodeStats{PeerStats: m.cons.LocalStats(), Sync: m.syncReport(), Now: m.d.wall().UTC()}
	s.Syncing = len(s.Sync) > 0
	s.Reasons = m.d.reasons()
	s.Identity, s.IdentityShown = m.fingerprint, m.svc != nil && m.ident.shown.Load() && m.svc.masterServes()
	if m.svc != nil {
		s.Unanswered, s.Serial = m.svc.returns.Aside(), m.svc.clock.Last()
		s.Own = m.d.own.get()
	}
	return s
}

func (m *member) handleStats(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(m.localStats())
}

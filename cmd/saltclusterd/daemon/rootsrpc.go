package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

// Paths of peer RPC about the roots; content is fetched at roots.Path.
const (
	pathRootsStatus    = "/v1/roots/status"
	pathRootsDiff      = "/v1/roots/diff"
	pathRootsConflicts = "/v1/roots/conflicts"
)

const (
	maxRootsAnswer = 8 << 20
	// maxRootsList bounds the differences and conflicts that one answer holds.
	maxRootsList = 10_000
	// rootsDiffTimeout bounds a comparison, for which trees have to be fetched.
	rootsDiffTimeout = 60 * time.Second
)

// rootsReport is what a node says of its roots.
type rootsReport struct {
	Off    string       `json:"off,omitempty"` // why nothing is replicated there
	Notes  []string     `json:"notes,omitempty"`
	Paths  roots.Paths  `json:"paths,omitempty"` // of the slots
	Status roots.Status `json:"status"`
}

var (
	rootsStatusRPC    = peerrpc.Endpoint[peerrpc.None, rootsReport]{Method: http.MethodGet, Path: pathRootsStatus, MaxAnswer: maxRootsAnswer}
	rootsConflictsRPC = peerrpc.Endpoint[peerrpc.None, []roots.Conflict]{Method: http.MethodGet, Path: pathRootsConflicts, MaxAnswer: maxRootsAnswer}
	rootsDiffRPC      = peerrpc.Endpoint[node.ID, []roots.Change]{
		Method: http.MethodGet, Path: pathRootsDiff, MaxAnswer: maxRootsAnswer,
		Encode: func(other node.ID) url.Values { return url.Values{"node": {string(other)}} },
		Decode: func(v url.Values) (node.ID, error) { return node.ID(v.Get("node")), nil },
	}
)

// handleRoots adds what other nodes ask about the roots.
func (s *service) handleRoots(mux *peerrpc.Mux) {
	mux.Handle(rootsStatusRPC.Pattern(), rootsStatusRPC.Handler(func(context.Context, node.ID, peerrpc.None) (rootsReport, error) {
		return s.rootsReport(), nil
	}))
	if s.trees.rootsEngine == nil {
		return
	}
	mux.Handle("POST "+roots.Path, s.whenKept(s.trees.Handler()))
	mux.Handle(rootsConflictsRPC.Pattern(), s.whenKept(rootsConflictsRPC.Handler(s.listConflicts)))
	mux.Handle(rootsDiffRPC.Pattern(), s.whenKept(rootsDiffRPC.Handler(s.diffForPeer)))
}

func (s *service) listConflicts(context.Context, node.ID, peerrpc.None) ([]roots.Conflict, error) {
	return clip(s.trees.Conflicts()), nil
}

func (s *service) diffForPeer(ctx context.Context, _, other node.ID) ([]roots.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, rootsDiffTimeout)
	defer cancel()
	changes, err := s.trees.Diff(ctx, other)
	if err != nil {
		return nil, peerrpc.Unavailable(err.Error())
	}
	return clip(changes), nil
}

// whenKept answers peers "starting" until the roots are open; minions need not be served yet.
func (s *service) whenKept(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.kept.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func clip[T any](list []T) []T { return list[:min(len(list), maxRootsList)] }

// startingRoots is why roots are off that are being opened.
const startingRoots = "starting"

// rootsReport says how far this node's roots are.
func (s *service) rootsReport() rootsReport {
	r := rootsReport{Off: s.trees.off, Notes: s.trees.notes}
	if o := s.trees.order; o != nil {
		r.Notes, r.Paths = slices.Concat(r.Notes, o.Notes()), o.self
	}
	if s.trees.rootsEngine != nil && s.kept.Load() {
		r.Status = s.trees.Status()
	} else if r.Off == "" {
		r.Off = startingRoots
	}
	return r
}

// rootsReportOf asks a node.
func (m *member) rootsReportOf(ctx context.Context, id node.ID) (rootsReport, error) {
	if id == m.d.id {
		return m.svc.rootsReport(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return rootsStatusRPC.Call(ctx, m.client(), id, peerrpc.None{})
}

// rootsConflictsOf asks a node what it has put aside.
func (m *member) rootsConflictsOf(ctx context.Context, id node.ID) ([]roots.Conflict, error) {
	if id != m.d.id {
		ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
		defer cancel()
		return rootsConflictsRPC.Call(ctx, m.client(), id, peerrpc.None{})
	}
	if err := m.rootsKept(); err != nil {
		return nil, err
	}
	return clip(m.svc.trees.Conflicts()), nil
}

// rootsDiffOf has a node compare its roots with another's.
func (m *member) rootsDiffOf(ctx context.Context, id, other node.ID) ([]roots.Change, error) {
	if id != m.d.id {
		return rootsDiffRPC.Call(ctx, m.client(), id, other)
	}
	if err := m.rootsKept(); err != nil {
		return nil, err
	}
	changes, err := m.svc.trees.Diff(ctx, other)
	return clip(changes), err
}

// rootsKept says why this node's roots cannot be asked, nil when they can.
func (m *member) rootsKept() error {
	switch {
	case m.svc == nil:
		return errors.New("a witness has no roots")
	case m.svc.trees.off != "":
		return errors.New("roots are not replicated here: " + m.svc.trees.off)
	case !m.svc.kept.Load():
		return errors.New("this node's roots are being opened")
	}
	return nil
}

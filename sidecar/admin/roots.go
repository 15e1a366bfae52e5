package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// RootsKeeper is a Backend that keeps the file and pillar roots of all nodes equal.
type RootsKeeper interface {
	RootsStatus(ctx context.Context) (adminapi.RootsStatus, error)
	RootsHistory(ctx context.Context) (adminapi.RootsHistory, error)
	RootsConflicts(ctx context.Context) (adminapi.RootsConflicts, error)
	RootsDiff(ctx context.Context, from, to string) (adminapi.RootsDiff, error)
	SyncRoots(ctx context.Context, r adminapi.SyncRootsRequest, p Progress) (adminapi.Outcome, error)
	DecideRoots(ctx context.Context, r adminapi.DecideRootsRequest, p Progress) (adminapi.Outcome, error)
	AsideRoots(ctx context.Context, r adminapi.AsideRootsRequest, p Progress) (adminapi.Outcome, error)
	RefillRoots(ctx context.Context, r adminapi.RefillRootsRequest, p Progress) (adminapi.Outcome, error)
}

// diffTimeout bounds a comparison: the nodes look at their disks.
const diffTimeout = 90 * time.Second

func (s *Server) handleRoots(mux *http.ServeMux, k RootsKeeper) {
	mux.HandleFunc("GET /v1/roots", read(s, "roots_status", k.RootsStatus))
	mux.HandleFunc("GET /v1/roots/history", read(s, "roots_history", k.RootsHistory))
	mux.HandleFunc("GET /v1/roots/conflicts", read(s, "roots_conflicts", k.RootsConflicts))
	mux.HandleFunc("GET /v1/roots/diff", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		answerWithin(s, w, r, "roots_diff", diffTimeout, func(ctx context.Context) (adminapi.RootsDiff, error) {
			return k.RootsDiff(ctx, q.Get("from"), q.Get("to"))
		})
	})
	mux.HandleFunc("POST /v1/roots/sync", func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.SyncRootsRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "roots_sync", e)
			return
		}
		s.stream(w, r, "roots_sync", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return k.SyncRoots(ctx, req, p)
		})
	})
	mux.HandleFunc("POST /v1/roots/decide", func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.DecideRootsRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "roots_decide", e)
			return
		}
		s.stream(w, r, "roots_decide", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return k.DecideRoots(ctx, req, p)
		})
	})
	mux.HandleFunc("POST /v1/roots/aside", func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.AsideRootsRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "roots_aside", e)
			return
		}
		s.stream(w, r, "roots_aside", diffTimeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return k.AsideRoots(ctx, req, p)
		})
	})
	mux.HandleFunc("POST /v1/roots/refill", func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.RefillRootsRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "roots_refill", e)
			return
		}
		s.stream(w, r, "roots_refill", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return k.RefillRoots(ctx, req, p)
		})
	})
}

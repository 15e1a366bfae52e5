package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// RootsKeeper keeps the file and pillar roots of all nodes equal.
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

// Roots are the verbs about file and pillar roots.
func Roots(k RootsKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/roots", serveRead(s, "roots_status", k.RootsStatus))
		mux.HandleFunc("GET /v1/roots/history", serveRead(s, "roots_history", k.RootsHistory))
		mux.HandleFunc("GET /v1/roots/conflicts", serveRead(s, "roots_conflicts", k.RootsConflicts))
		mux.HandleFunc("GET /v1/roots/diff", serveQuery(s, "roots_diff", diffTimeout,
			func(ctx context.Context, r *http.Request) (adminapi.RootsDiff, error) {
				q := r.URL.Query()
				return k.RootsDiff(ctx, q.Get("from"), q.Get("to"))
			}))
		mux.HandleFunc("POST /v1/roots/sync", serveStreamed(s, "roots_sync", k.SyncRoots))
		mux.HandleFunc("POST /v1/roots/decide", serveStreamed(s, "roots_decide", k.DecideRoots))
		mux.HandleFunc("POST /v1/roots/aside", serveStreamed(s, "roots_aside", k.AsideRoots))
		mux.HandleFunc("POST /v1/roots/refill", serveStreamed(s, "roots_refill", k.RefillRoots))
	}
}

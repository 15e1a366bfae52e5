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
		mux.HandleFunc("GET /v1/roots/diff", func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			answerWithin(s, w, r, "roots_diff", diffTimeout, func(ctx context.Context) (adminapi.RootsDiff, error) {
				return k.RootsDiff(ctx, q.Get("from"), q.Get("to"))
			})
		})
		mux.HandleFunc("POST /v1/roots/sync", serveOperation(s, "roots_sync",
			func(r adminapi.SyncRootsRequest) time.Duration { return r.Timeout }, k.SyncRoots))
		mux.HandleFunc("POST /v1/roots/decide", serveOperation(s, "roots_decide",
			func(r adminapi.DecideRootsRequest) time.Duration { return r.Timeout }, k.DecideRoots))
		mux.HandleFunc("POST /v1/roots/aside", serveOperation(s, "roots_aside",
			func(adminapi.AsideRootsRequest) time.Duration { return diffTimeout }, k.AsideRoots))
		mux.HandleFunc("POST /v1/roots/refill", serveOperation(s, "roots_refill",
			func(r adminapi.RefillRootsRequest) time.Duration { return r.Timeout }, k.RefillRoots))
	}
}

// serveOperation carries out what the body of a request asks for, within the time that timeout takes from it, and
// streams its progress.
func serveOperation[R any](s *Server, verb string, timeout func(R) time.Duration,
	do func(context.Context, R, Progress) (adminapi.Outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req R
		if e := decodeBody(w, r, &req); e != nil {
			s.writeError(w, verb, e)
			return
		}
		s.runStreamed(w, r, verb, timeout(req), func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return do(ctx, req, p)
		})
	}
}

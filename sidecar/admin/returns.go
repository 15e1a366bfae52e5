package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// ReturnKeeper puts returns aside which its salt-master does not answer.
type ReturnKeeper interface {
	UnansweredReturns(ctx context.Context) (adminapi.UnansweredReturns, error)
	RetryReturns(ctx context.Context) (adminapi.RetriedReturns, error)
	DropReturn(ctx context.Context, id string) (adminapi.UnansweredReturn, error)
}

// Returns are the verbs about returns that a master does not answer.
func Returns(k ReturnKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/returns/unanswered", serveRead(s, "returns", k.UnansweredReturns))
		mux.HandleFunc("POST /v1/returns/unanswered", serveRead(s, "returns_retry", k.RetryReturns))
		mux.HandleFunc("DELETE /v1/returns/unanswered/{id}", serveQuery(s, "returns_drop", 0,
			func(ctx context.Context, r *http.Request) (adminapi.UnansweredReturn, error) {
				return k.DropReturn(ctx, r.PathValue("id"))
			}))
	}
}

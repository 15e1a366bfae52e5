package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Verifier can compare what the nodes hold.
type Verifier interface {
	Verify(ctx context.Context) (adminapi.Verification, error)
}

// verifyTimeout bounds a comparison: every node reads all it has, several times perhaps.
const verifyTimeout = 5 * time.Minute

// Verifying is the verb verify.
func Verifying(v Verifier) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/verify", serveQuery(s, "verify", verifyTimeout,
			func(ctx context.Context, _ *http.Request) (adminapi.Verification, error) { return v.Verify(ctx) }))
	}
}

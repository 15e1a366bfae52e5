package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// Examiner tells what only the daemon can find out about its node and the way to the others.
type Examiner interface {
	Checkup(ctx context.Context) (adminapi.Checkup, error)
}

// Checkups is the verb that doctor asks with.
func Checkups(x Examiner) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/checkup", serveRead(s, "checkup", x.Checkup))
	}
}

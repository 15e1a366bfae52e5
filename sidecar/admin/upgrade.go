package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// Upgrader can be replaced by another process in place. When Upgrade returns an outcome, the other
// process serves.
type Upgrader interface {
	Upgrade(ctx context.Context, r adminapi.UpgradeRequest, p Progress) (adminapi.Outcome, error)
}

func (s *Server) serveUpgrade(u Upgrader) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.UpgradeRequest
		if e := decodeBody(w, r, &req); e != nil {
			s.writeError(w, "upgrade", e)
			return
		}
		s.runLong(w, r, "upgrade", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return u.Upgrade(ctx, req, p)
		})
	}
}

// Upgrading is the verb upgrade.
func Upgrading(u Upgrader) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/upgrade", s.serveUpgrade(u))
	}
}

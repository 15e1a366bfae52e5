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

// Upgrading is the verb upgrade.
func Upgrading(u Upgrader) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/upgrade", serveLong(s, "upgrade", u.Upgrade))
	}
}

package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// MinionViewer tells which minions the cluster sees.
type MinionViewer interface {
	// Minions lists the connections to all nodes. A node that does not answer is listed as missing.
	Minions(ctx context.Context) (adminapi.Minions, error)
	// Presence lists the accepted minions that are alive, and those that are not.
	Presence(ctx context.Context) (adminapi.Presence, error)
}

// MinionViews are the verbs about the minions that the cluster sees.
func MinionViews(v MinionViewer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/minions", serveRead(s, "minions", v.Minions))
		mux.HandleFunc("GET /v1/presence", serveRead(s, "presence", v.Presence))
	}
}
